// SPDX-License-Identifier: Apache-2.0
// Stops processes of groups that no longer use the PlacementGroup (placementgroup_users.h). If the operator sees that a
// group goes, it stops them at once. If an agent reports processes of an unknown group, it waits a moment first.
#pragma once

#include "common/base/loop.h"
#include "operator/exec/placementgroup_users.h"
#include "operator/kube/kube_client.h"

struct orphans;

// All arguments are borrowed. The client knows whether this replica may decide. `stores` is indexed by enum kind.
// `agents` is NULL if no agent ever connects.
struct orphans *orphans_new(struct loop *loop, const struct kube_client *client,
                            const struct placementgroup_users *users, struct store *const *stores,
                            struct agents *agents);
void orphans_free(struct orphans *e); // accepts NULL
// orphans_start() looks at all PlacementGroups. Before it, after orphans_stop(), and after the Lease has expired,
// agents get no command. A process that was frozen does not know what the next leader has begun.
void orphans_start(struct orphans *e);
void orphans_stop(struct orphans *e);
void orphans_now(struct orphans *e, const char *ns, const char *placementgroup);
void orphans_later(struct orphans *e, const char *ns, const char *placementgroup);
