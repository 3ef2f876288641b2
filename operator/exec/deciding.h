// SPDX-License-Identifier: Apache-2.0
// Everything that only the leader does: it decides about WorkerGroups and PlacementGroups, and deletes what belonged to
// objects that are gone. A process starts and stops deciding whenever it wins or loses the election. Serving calls does
// not depend on it.
#pragma once

#include "operator/exec/group_controller.h"
#include "operator/exec/placementgroup_controller.h"

struct deciding;

// Takes ownership of the controllers, which follow the same stores. The client must outlive it; what is sent for it has
// request.decided set.
struct deciding *deciding_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                              struct group_controller *groups, struct placementgroup_controller *placementgroups);
void deciding_free(struct deciding *d); // as group_controller_free(); accepts NULL

// This process leads: every object is looked at again, and nothing is remembered of an earlier term.
void deciding_start(struct deciding *d);
// Begins nothing new; what is under way ends, which deciding_idle() tells.
void deciding_stop(struct deciding *d);
// Another replica may lead already: what waits to be sent is dropped, and no answer is awaited.
void deciding_lose(struct deciding *d);
// The API server answers again: what failed is tried at once.
void deciding_retry(struct deciding *d);
// What the territory says has changed: every object is looked at.
void deciding_look(struct deciding *d);
bool deciding_idle(const struct deciding *d); // no write is under way
