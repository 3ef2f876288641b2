// SPDX-License-Identifier: Apache-2.0
// Deletes the pods of a deleted object at once, to release their resources. (The garbage collector would delete them
// seconds later.) If a deletion fails, the garbage collector deletes the pod. It also deletes the Services.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

struct pod_reaper;

// Both arguments are borrowed. `stores` is indexed by enum kind. Subscribes to the stores of WorkerGroups and
// PlacementGroups.
struct pod_reaper *pod_reaper_new(struct kube_client *client, struct store *const *stores);
void pod_reaper_start(struct pod_reaper *r);      // only the leader deletes
void pod_reaper_stop(struct pod_reaper *r);       // begins nothing new
bool pod_reaper_idle(const struct pod_reaper *r); // none of its requests is in progress
// Call this after the client is freed, because every request must have ended. Accepts NULL.
void pod_reaper_free(struct pod_reaper *r);
