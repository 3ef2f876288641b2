// SPDX-License-Identifier: Apache-2.0
// The way of a nested call: the methods that wait for it, the outermost first, as member "via" of its head:
//
//   ["ml/trainer/0/step", "ml/judge/1/critic/score"]         namespace/group/rank[/role]/method
//
// With it, ranks (and the proxy, for tasks) find calls that would wait for a method that waits for them.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/json.h"

enum { VIA_MAX = 16 }; // methods, each waiting for the next

struct via_entry { // a method on a rank
    const char *ns, *group;
    int rank;
    const char *role, *method; // role NULL = none
};

int via_check(const struct json *via, struct err *err); // ERR_INVALID: no list of such entries
// The JSON of `via` (len 0 = none) with one more entry at its end. ERR_LIMIT: more than VIA_MAX entries.
int via_add(const char *via, size_t len, const struct via_entry *entry, struct buf *out, struct err *err);

// Calls `same` with the role and method of each entry on that rank (-1 = on any rank of the group), the outermost
// first, until it returns true. Returns the index of that entry in the list, or -1.
int via_find(const struct json *via, const struct via_entry *rank, struct arena *a,
             bool (*same)(void *ctx, const char *role, const char *method), void *ctx);
void via_print(const struct json *via, int from, struct arena *a, struct buf *out); // "ml/a/0/step, ml/b/1/score"
