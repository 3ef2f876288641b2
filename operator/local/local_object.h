// SPDX-License-Identifier: Apache-2.0
// The groups and PlacementGroups of a local run, oldest first. The oldest is placed first. Each one has its place on
// the nodes of the run, or waits until others leave.
#pragma once

#include "common/base/list.h"
#include "operator/api/draft.h"
#include "operator/gateway/provisioner.h"
#include "operator/local/local_group.h"
#include "operator/local/nodes.h"

struct entries {
    struct loop *loop;
    struct nodes *nodes;
    struct gateway *gateway; // it is told which groups are gone
    bool gpus;               // the nodes have GPUs
    bool stopping;           // nothing new begins
    struct list list;
};

struct used_bundle {        // the bundle of one replica
    const struct entry *on; // the PlacementGroup; NULL = it was deleted
    int32_t bundle;
};

struct used_bundles { // one for each replica
    struct used_bundle *items;
    int32_t n;
};

// A group or a PlacementGroup.
struct entry {
    struct list link;
    struct entries *of;
    struct local_group *group;      // NULL = it is a PlacementGroup, and `placement` is set
    const struct object *placement; // referenced
    char *ns, *name, *uid;
    struct used_bundles used; // for a group on bundles
    const void *lifetime;     // NULL = it is detached, or its session is away
    bool bound;               // it ends with its session
    bool placed;              // it has its nodes and was started
    // Deleted: nobody finds it any more, but it exists until its processes have ended, or the processes on it.
    bool gone;
    char *hash;                   // of the request that created it
    char *waits;                  // for a PlacementGroup: what it waits for
    struct loop_timer *abandoned; // deletes it after its session has ended
    struct arena arena;           // contains the assignment
    struct nodes_assignment assignment;
};

struct entry *entry_new(struct entries *es, const struct provision *p, const struct draft *draft);
void entry_free(struct entry *e);
// Places and starts it. If there is no place now, it waits for one. If there can never be one, or if it cannot start,
// this returns an error and frees it.
int entry_begin(struct entry *e, struct err *err);
void entry_start_again(struct entry *e, struct err *err); // starts the processes of a group again
void entry_delete(struct entry *e);                       // at once, or when its processes have ended
bool entry_runs(const struct entry *e);                   // true while processes of it, or on it, run

// Returns NULL if there is none.
struct entry *entries_find(const struct entries *es, enum kind kind, const char *ns, const char *name);
const struct entry *entries_by_uid(const struct entries *es, const char *uid);
// Finds the bundles of the replicas of a group. Errors: ERR_NOT_FOUND, ERR_INVALID.
int entries_take_bundles(const struct entries *es, const char *ns, const struct workergroup *g,
                         struct used_bundles *used, struct err *err);
void entries_place_waiting(struct entries *es);
void entries_reap(struct entries *es); // frees deleted ones whose processes have ended
