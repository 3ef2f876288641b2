// SPDX-License-Identifier: Apache-2.0
// Deletes the pods of a deleted object at once, to release their resources. (The garbage collector would delete them
// seconds later.) Whatever it cannot delete is left to the garbage collector, which also deletes the Services.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

struct reaper;

// Both borrowed; stores by enum kind. Subscribes to WorkerGroups and PlacementGroups.
struct reaper *reaper_new(struct kube_client *client, struct store *const *stores);
void reaper_start(struct reaper *r);      // only the leader deletes
void reaper_stop(struct reaper *r);       // begins nothing new
bool reaper_idle(const struct reaper *r); // nothing of it is in flight
void reaper_free(struct reaper *r);       // after the client: every request must have ended
