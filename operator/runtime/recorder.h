// SPDX-License-Identifier: Apache-2.0
// Events (events.k8s.io/v1). Equal ones (object, type, reason, note) within 10 minutes become one series. A token
// bucket per object (25, and one more every 5 minutes) protects the API server from objects that change all the time.
// Best effort: a failed write is counted in the metrics and not repeated for ever. Memory is bounded: the least
// recently used objects are forgotten. Warnings are written at once. Other Events wait until the client has had no
// other request for a moment, at most two seconds. Only the leader writes Events. Waiting ones are dropped when its
// term ends.
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
// An object has gone: that all went well with it is not written any more.
void recorder_forget(struct recorder *r, const struct object *gone);
