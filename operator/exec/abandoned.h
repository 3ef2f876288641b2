// SPDX-License-Identifier: Apache-2.0
// Deletes WorkerGroups and PlacementGroups whose client session has ended and whose renewals have stopped
// (operator/wiring/provision.h writes the renewals). It measures the time itself, from the moment when it saw the last
// renewal. It never compares clocks of different machines. A new leader therefore waits the whole time again.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

enum { ABANDONED_AFTER_MS = 120 * 1000 };

struct abandoned;

// Subscribes to the stores of WorkerGroups and PlacementGroups. `stores` is indexed by enum kind. An object is deleted
// after `after_ms` without a renewal. If another write is in the way of the deletion, it is tried again after a twelfth
// of that time; if it fails otherwise, after the whole time.
struct abandoned *abandoned_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                                int64_t after_ms);
void abandoned_start(struct abandoned *a); // call it when this process begins to lead
void abandoned_stop(struct abandoned *a);
bool abandoned_idle(const struct abandoned *a); // no write is in progress
void abandoned_free(struct abandoned *a);       // call it after the client is freed; accepts NULL
