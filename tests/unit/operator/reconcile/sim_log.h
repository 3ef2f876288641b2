// SPDX-License-Identifier: Apache-2.0
// The log of a simulated API server: each change is an entry, with a number that grows. Mirrors are the caches of
// processes. They are filled from the log, each kind separately, early or late.
#pragma once

#include "common/base/rand.h"
#include "operator/placement/cluster.h"
#include "operator/runtime/store.h"

struct sim_change {
    enum kind kind;
    const char *name;
    const struct object *now; // NULL: deleted
};

struct sim_log {
    struct arena *arena; // for names, until the end
    int64_t version;     // the latest resourceVersion
    struct sim_change *list;
    size_t n, size;
    const struct object **kept;
    size_t n_kept, size_kept;
};

void sim_log_done(struct sim_log *l);
const char *sim_log_version(struct sim_log *l); // the next resourceVersion
void sim_log_add(struct sim_log *l, enum kind kind, const char *name, const struct object *now);
void sim_log_keep(struct sim_log *l, const struct object *o); // takes o until the end: copies of it share its strings

struct sim_mirror { // of objects in namespace ml, and nodes
    const enum kind *kinds;
    size_t n_kinds;
    struct store *stores[KIND_COUNT]; // NULL for other kinds
    size_t seen[KIND_COUNT];          // of the log
};

void sim_mirror_init(struct sim_mirror *m, const enum kind *kinds, size_t n);
void sim_mirror_done(struct sim_mirror *m);
void sim_mirror_follow_all(struct sim_mirror *m, const struct sim_log *l, size_t end); // the first `end` of the log
// For each kind, takes all entries with this probability in percent, and otherwise a few.
void sim_mirror_follow_some(struct sim_mirror *m, const struct sim_log *l, struct rand *rand, int percent);
// Calls `changed` for each object that exists, and then for each change.
void sim_mirror_subscribe(struct sim_mirror *m, store_fn changed, void *ctx);
// Counts pods and nodes in the cluster as a leader does, for one change.
void sim_mirror_account(struct cluster *c, const struct object *old, const struct object *now);
