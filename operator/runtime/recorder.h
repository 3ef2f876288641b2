// SPDX-License-Identifier: Apache-2.0
// Writes Events (events.k8s.io/v1). Equal Events (object, type, reason, note) within 10 minutes become one series. A
// token bucket per object (25 tokens, and one more every 5 minutes) protects the API server from objects that change
// all the time. Best effort: a failed write is counted in the metrics and not repeated for ever. Memory is bounded: it
// forgets the least recently used objects. It writes warnings at once. Other Events wait until the client has had no
// other request for a moment, at most two seconds. Only the leader writes Events. When its term ends, the waiting ones
// are dropped.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/metrics.h"

struct recorder;

// All borrowed; metrics may be NULL.
struct recorder *recorder_new(struct loop *loop, struct kube_client *client, const char *controller,
                              const char *instance, struct metrics *metrics);
void recorder_free(struct recorder *r);
void recorder_event(struct recorder *r, const struct object *regarding, bool warning, const char *reason,
                    const char *note);
// Call this when an object was deleted. Its Events that are not warnings are then not written any more.
void recorder_forget(struct recorder *r, const struct object *gone);
