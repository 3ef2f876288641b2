// SPDX-License-Identifier: Apache-2.0
// Deletes the pods of a deleted object at once, to release their resources. (The garbage collector would delete them
// seconds later.) If a deletion fails, the garbage collector deletes the pod. It also deletes the Services.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

struct reaper;

// Both arguments are borrowed. `stores` is indexed by enum kind. Subscribes to the stores of WorkerGroups and
// PlacementGroups.
struct reaper *reaper_new(struct kube_client *client, struct store *const *stores);
void reaper_start(struct reaper *r);      // only the leader deletes
void reaper_stop(struct reaper *r);       // begins nothing new
bool reaper_idle(const struct reaper *r); // none of its requests is in progress
// Call this after the client is freed, because every request must have ended. Accepts NULL.
void reaper_free(struct reaper *r);
