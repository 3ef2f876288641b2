// SPDX-License-Identifier: Apache-2.0
// The groups and PlacementGroups of a local run, oldest first. The oldest is placed first. Each one has its place on
// the nodes of the run, or waits until others leave. A group that has a place but cannot be started gives the place
// back, and is tried again after a backoff.
#pragma once

#include "common/base/list.h"
#include "operator/api/draft.h"
#include "operator/gateway/provisioner.h"
#include "operator/local/local_group.h"
#include "operator/local/nodes.h"

struct local_objects {
    struct loop *loop;
    struct nodes *nodes;
    struct gateway *gateway; // it is told which groups are gone
    bool gpus;               // the nodes have GPUs
    bool stopping;           // nothing new begins
    struct list list;
};

struct used_bundle {               // the bundle of one replica
    const struct local_object *on; // the PlacementGroup; NULL = it was deleted
    int32_t bundle;
};

struct used_bundles { // one for each replica
    struct used_bundle *items;
    int32_t n;
};

// A group or a PlacementGroup.
struct local_object {
    struct list link;
    struct local_objects *of;
    struct local_group *group;           // NULL = it is a PlacementGroup, and `placementgroup` is set
    const struct object *placementgroup; // referenced
    char *ns, *name, *uid;
    struct used_bundles used; // for a group on bundles
    const void *lifetime;     // NULL = it is detached, or its session is away
    bool bound;               // it ends with its session
    bool placed;              // it has its nodes and was started
    // It was deleted, and nobody finds it any more. It exists until its processes, or the processes on its bundles,
    // have ended.
    bool gone;
    char *hash;                   // of the request that created it
    char *waits;                  // for a PlacementGroup: what it waits for
    struct loop_timer *abandoned; // deletes it after its session has ended
    struct loop_timer *again;     // tries to place and start it again
    int32_t tries;                // starts that have failed since one succeeded
    struct arena arena;           // contains the assignment
    struct nodes_assignment assignment;
};

struct local_object *local_object_new(struct local_objects *all, const struct provision *p, const struct draft *draft);
void local_object_free(struct local_object *o);
// Places and starts it. If there is no place now, it waits for one. If there can never be one, or if it cannot start,
// this returns an error and frees it.
int local_object_begin(struct local_object *o, struct err *err);
void local_object_start_again(struct local_object *o, struct err *err); // starts the processes of a group again
void local_object_delete(struct local_object *o);                       // at once, or when its processes have ended
bool local_object_runs(const struct local_object *o);                   // true while processes of it, or on it, run

// Returns NULL if there is none.
struct local_object *local_objects_find(const struct local_objects *all, enum kind kind, const char *ns,
                                        const char *name);
const struct local_object *local_objects_by_uid(const struct local_objects *all, const char *uid);
// Finds the bundles of the replicas of a group. Errors: ERR_NOT_FOUND, ERR_INVALID.
int local_objects_take_bundles(const struct local_objects *all, const char *ns, const struct workergroup *g,
                               struct used_bundles *used, struct err *err);
void local_objects_place_waiting(struct local_objects *all);
void local_objects_reap(struct local_objects *all); // frees deleted ones whose processes have ended
