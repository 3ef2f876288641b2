// SPDX-License-Identifier: Apache-2.0
// Events (events.k8s.io/v1): equal ones (object, type, reason, note) within 10 minutes become one series; a token
// bucket an object (25, one more every 5 minutes) keeps a flapping object from flooding the API server. Best effort: a
// failed write is counted in the metrics, not retried for ever. Memory is bounded (least recently used objects are
// forgotten). Warnings are written at once; what is none waits, at most two seconds, until the client has had no other
// request under way for a moment. Only the leader tells: what waits when its term ends is dropped.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/metrics.h"

struct recorder;

struct recorder *recorder_new(struct loop *loop, struct kube_client *client, const char *controller,
                              const char *instance, struct metrics *metrics);
void recorder_free(struct recorder *r);
void recorder_event(struct recorder *r, const struct object *regarding, bool warning, const char *reason,
                    const char *note);
// An object has gone: that all went well with it is not written any more.
void recorder_forget(struct recorder *r, const struct object *gone);
