// SPDX-License-Identifier: Apache-2.0
// Tells which WorkerGroups run on which PlacementGroups. A WorkerGroup runs on the PlacementGroups that its spec names,
// and on those where its present attempt still runs. It is in memory only. The listener of the WorkerGroup store keeps
// it up to date.
#pragma once

#include "operator/agents/agents.h"
#include "operator/api/workergroup.h"
#include "operator/runtime/store.h"

struct placementgroup_users;

struct placementgroup_users *placementgroup_users_new(void);
void placementgroup_users_free(struct placementgroup_users *t); // accepts NULL

// Call this when a WorkerGroup was created (`old` is NULL), changed, or deleted (`now` is NULL).
void placementgroup_users_set(struct placementgroup_users *t, const struct workergroup *old,
                              const struct workergroup *now);

// Gets the key "namespace/name" of each WorkerGroup on a PlacementGroup. The oldest group comes first, so it is the
// first to use what another group leaves. The function must not change the users.
typedef void (*placementgroup_users_fn)(void *ctx, const char *key);
void placementgroup_users_each(const struct placementgroup_users *t, const char *ns, const char *placementgroup,
                               placementgroup_users_fn fn, void *ctx);
// Returns true if the group runs on the PlacementGroup. `group_uid` NULL: if any group does.
bool placementgroup_users_has(const struct placementgroup_users *t, const char *ns, const char *placementgroup,
                              const char *group_uid);

// Tells the agents of this PlacementGroup's pods to stop processes of groups that do not use it any more. These groups
// were deleted, or run elsewhere. Returns true if there are processes of a group that cannot be read: nobody knows
// whether it uses the PlacementGroup, so they run on. Then call it again later.
bool placementgroup_users_stop_orphans(const struct placementgroup_users *t, struct agents *agents,
                                       struct store *const *stores, const struct object *placementgroup);
