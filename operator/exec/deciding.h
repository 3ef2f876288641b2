// SPDX-License-Identifier: Apache-2.0
// Everything that only the leader does. The leader decides about WorkerGroups and PlacementGroups, and deletes what
// belonged to deleted objects. A process starts deciding when it wins the election, and stops when it loses. Serving
// calls does not depend on it.
#pragma once

#include "operator/exec/group_controller.h"
#include "operator/exec/placementgroup_controller.h"

struct deciding;

// Takes ownership of the controllers, which follow the same stores. The client must outlive it. All requests of this
// module have request.decided set.
struct deciding *deciding_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                              struct group_controller *groups, struct placementgroup_controller *placementgroups);
void deciding_free(struct deciding *d); // same conditions as group_controller_free(); accepts NULL

// Call this when this process begins to lead. It looks at every object again and remembers nothing of an earlier term.
void deciding_start(struct deciding *d);
// Begins nothing new. Requests in progress end normally; deciding_idle() tells when.
void deciding_stop(struct deciding *d);
// Call this when another replica may lead already. It drops the requests that wait to be sent, and waits for no
// answers.
void deciding_lose(struct deciding *d);
// Call this when the API server answers again, after it did not for away_ms. It tries failed work again at once.
void deciding_retry(struct deciding *d, int64_t away_ms);
// Call this when the excluded namespaces have changed. It looks at every object again.
void deciding_look(struct deciding *d);
bool deciding_idle(const struct deciding *d); // no write is in progress
