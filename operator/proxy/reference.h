// SPDX-License-Identifier: Apache-2.0
// References in arguments, and who has what they name. A reference says where an object is; on its way to a rank it
// gets what it takes to fetch the object: an address and a key.
#pragma once

#include "common/wire/ref.h"
#include "operator/proxy/router_state.h"

#define REFERENCE_KEY_MS ((int64_t)24 * 3600 * 1000) // so long a key fits for a call without a deadline
#define REFERENCE_LOCAL_UID "local-"                 // UIDs of groups of local runs begin so; a run knows only its own

// The group of a reference in a call of that namespace, and the process that has one of its parts. ERR_GONE: lost;
// ERR_FORBIDDEN.
int reference_group(const struct router *r, const char *ns, const struct ref *ref, struct group **ret, struct err *err);
int reference_member(const struct group *g, const struct ref_part *p, struct member **ret, struct err *err);

struct reference_call { // in whose arguments they are
    const struct router *router;
    const char *ns, *method;
    int64_t timeout_ms; // 0 = none
};

// Parts of a reference, for the worker that gets them: {"$ref": ..., "at": ...}, or several that it joins.
int reference_write(const struct reference_call *c, const struct ref *ref, uint32_t first, uint32_t n, struct buf *out,
                    struct err *err);
// The arguments with what it takes to fetch the objects. `each` of its ranks gets the same. *ret_any: there are some.
int reference_write_all(const struct reference_call *c, const char *args, size_t len, struct buf *out, bool *ret_any,
                        struct err *err);
