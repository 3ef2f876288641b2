// SPDX-License-Identifier: Apache-2.0
// Which WorkerGroups run on which PlacementGroups: by their specs, and by their present attempts while these still run.
// Memory only; the listener of the WorkerGroup store keeps it up to date.
#pragma once

#include "operator/agents/agents.h"
#include "operator/api/workergroup.h"
#include "operator/runtime/store.h"

struct placementgroup_users;

struct placementgroup_users *placementgroup_users_new(void);
void placementgroup_users_free(struct placementgroup_users *t); // accepts NULL

// A WorkerGroup came (old NULL), changed or went (now NULL).
void placementgroup_users_set(struct placementgroup_users *t, const struct workergroup *old,
                              const struct workergroup *now);

// `key`: "namespace/name" of a WorkerGroup, the oldest first: what one leaves to the others is its. May not change the
// users.
typedef void (*placementgroup_users_fn)(void *ctx, const char *key);
void placementgroup_users_each(const struct placementgroup_users *t, const char *ns, const char *placementgroup,
                               placementgroup_users_fn fn, void *ctx);
// group_uid NULL: any.
bool placementgroup_users_has(const struct placementgroup_users *t, const char *ns, const char *placementgroup,
                              const char *group_uid);

// Tells the agents of this PlacementGroup's pods to stop what they run of groups that do not use it (any more): they
// were deleted, or run elsewhere.
void placementgroup_users_stop_orphans(const struct placementgroup_users *t, struct agents *agents,
                                       const struct store *pods, const struct object *placementgroup);
