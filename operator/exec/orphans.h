// SPDX-License-Identifier: Apache-2.0
// Stops processes of groups that no longer use the PlacementGroup (placementgroup_users.h). If it saw the group go, it
// stops them at once. If an agent reports processes of an unknown group, it waits a moment first.
#pragma once

#include "common/base/loop.h"
#include "operator/exec/placementgroup_users.h"
#include "operator/kube/kube_client.h"

struct orphans;

// All borrowed. client: says whether this replica may decide. Stores by enum kind. agents NULL: nobody is ever
// connected.
struct orphans *orphans_new(struct loop *loop, const struct kube_client *client,
                            const struct placementgroup_users *users, struct store *const *stores,
                            struct agents *agents);
void orphans_free(struct orphans *e); // accepts NULL
// Tells nobody anything before the start, at which it looks at all PlacementGroups, nor after the stop, nor once the
// lease has run out: a process that was frozen does not know yet what the next leader has begun meanwhile.
void orphans_start(struct orphans *e);
void orphans_stop(struct orphans *e);
void orphans_now(struct orphans *e, const char *ns, const char *placementgroup);
void orphans_later(struct orphans *e, const char *ns, const char *placementgroup);
