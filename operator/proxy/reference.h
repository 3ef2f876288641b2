// SPDX-License-Identifier: Apache-2.0
// References in arguments, and the processes that have their objects. A reference says where an object is. On its way
// to a rank, it gets what the rank needs to fetch the object: an address and a key.
#pragma once

#include "common/wire/ref.h"
#include "operator/proxy/router_state.h"

#define REFERENCE_KEY_MS ((int64_t)24 * 3600 * 1000) // how long a key is valid, for a call without a deadline
#define REFERENCE_LOCAL_UID "local-" // UIDs of groups of local runs begin with this. A run only knows its own groups

// The group of a reference in a call of that namespace, and the process that has one of its parts. ERR_GONE: the object
// is lost. ERR_FORBIDDEN: another namespace.
int reference_group(const struct router *r, const char *ns, const struct ref *ref, struct group **ret, struct err *err);
int reference_member(const struct group *g, const struct ref_part *p, struct member **ret, struct err *err);

struct reference_call { // the call that has the references in its arguments
    const struct router *router;
    const char *ns, *method;
    int64_t timeout_ms; // 0 = none
};

// Writes parts of a reference for the worker that gets them: {"$ref": ..., "at": ...}, or several parts, which the
// worker joins.
int reference_write(const struct reference_call *c, const struct ref *ref, uint32_t first, uint32_t n, struct buf *out,
                    struct err *err);
// Writes the arguments, with an address and a key in each reference. *ret_any: there are references.
int reference_write_all(const struct reference_call *c, const char *args, size_t len, struct buf *out, bool *ret_any,
                        struct err *err);
