// SPDX-License-Identifier: Apache-2.0
// Deletes WorkerGroups and PlacementGroups whose client session has ended and that nobody renews any more
// (operator/wiring/provision.h writes the renewals). It measures the time itself, from the moment when it saw the last
// renewal. It never compares clocks of different machines. A new leader therefore waits the whole time again.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

enum { ABANDONED_AFTER_MS = 120 * 1000 };

struct abandoned;

// Subscribes to WorkerGroups and PlacementGroups; stores by enum kind. after_ms: how long one may be silent.
struct abandoned *abandoned_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                                int64_t after_ms);
void abandoned_start(struct abandoned *a); // this process leads
void abandoned_stop(struct abandoned *a);
bool abandoned_idle(const struct abandoned *a); // no write is under way
void abandoned_free(struct abandoned *a);       // after the client; accepts NULL
