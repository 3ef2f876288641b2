// SPDX-License-Identifier: Apache-2.0
// Which WorkerGroups run on which PlacementGroups, by what their specs say, and by what their present attempts were
// made from while that runs on. Memory only, kept up by whoever listens to the store of the WorkerGroups.
#ifndef CADRE_EXEC_TENANCY_H
#define CADRE_EXEC_TENANCY_H

#include "operator/agents/agents.h"
#include "operator/api/workergroup.h"
#include "operator/runtime/store.h"

struct tenancy;

struct tenancy *tenancy_new(void);
void tenancy_free(struct tenancy *t); // accepts NULL

// A WorkerGroup came (old NULL), changed or went (now NULL).
void tenancy_set(struct tenancy *t, const struct workergroup *old, const struct workergroup *now);

// `key`: "namespace/name" of a WorkerGroup, the oldest first: what one leaves to the others is its. May not change the
// tenancy.
typedef void (*tenancy_fn)(void *ctx, const char *key);
void tenancy_each(const struct tenancy *t, const char *ns, const char *placementgroup, tenancy_fn fn, void *ctx);
// group_uid NULL: any.
bool tenancy_has(const struct tenancy *t, const char *ns, const char *placementgroup, const char *group_uid);

// Tells the agents of this PlacementGroup's pods to stop what they run of groups that are no tenants (any more): they
// were deleted, or run elsewhere.
void tenancy_evict(const struct tenancy *t, struct agents *agents, const struct store *pods,
                   const struct object *placementgroup);

#endif
