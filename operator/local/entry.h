// SPDX-License-Identifier: Apache-2.0
// The groups and PlacementGroups of a local run, by age: the first to come is assigned first. Each one has its place on
// the run's nodes, or waits until others leave.
#pragma once

#include "common/base/list.h"
#include "operator/api/draft.h"
#include "operator/gateway/provisioner.h"
#include "operator/local/local_group.h"
#include "operator/local/nodes.h"

struct entries {
    struct loop *loop;
    struct nodes *nodes;
    struct gateway *gateway; // hears of groups that are gone
    bool gpus;               // the nodes have some
    bool stopping;           // nothing new begins
    struct list list;
};

struct used_bundle {        // of a replica
    const struct entry *on; // the PlacementGroup; NULL = it is gone
    int32_t bundle;
};

struct used_bundles { // one of each replica
    struct used_bundle *items;
    int32_t n;
};

// A group, or a PlacementGroup.
struct entry {
    struct list link;
    struct entries *of;
    struct local_group *group;      // NULL = it is a PlacementGroup:
    const struct object *placement; // referenced
    char *ns, *name, *uid;
    struct used_bundles used;     // of a group on bundles
    const void *lifetime;         // NULL = detached, or the session is away
    bool bound;                   // it goes with a session
    bool placed;                  // it has its nodes, and was started
    bool gone;                    // nobody finds it any more; it lives until its processes, or those on it, have ended
    char *hash;                   // of the request that made it
    char *waits;                  // of a PlacementGroup: for what
    struct loop_timer *abandoned; // deletes it
    struct arena arena;           // of the assignment
    struct nodes_assignment assignment;
};

struct entry *entry_new(struct entries *es, const struct provision *p, const struct draft *draft);
void entry_free(struct entry *e);
// What has no place now waits for one. What can never have one is refused and freed, and so is what cannot be started.
int entry_begin(struct entry *e, struct err *err);
void entry_start_again(struct entry *e, struct err *err); // the processes of a group
void entry_delete(struct entry *e);                       // at once, or when its processes have ended
bool entry_runs(const struct entry *e);                   // processes of it, or on it, do

// NULL = there is none.
struct entry *entries_find(const struct entries *es, enum kind kind, const char *ns, const char *name);
const struct entry *entries_by_uid(const struct entries *es, const char *uid);
// The bundles of the replicas of a group. ERR_NOT_FOUND, ERR_INVALID.
int entries_take_bundles(const struct entries *es, const char *ns, const struct workergroup *g,
                         struct used_bundles *used, struct err *err);
void entries_place_waiting(struct entries *es);
void entries_reap(struct entries *es); // frees those that are gone and have ended
