// SPDX-License-Identifier: Apache-2.0
// Deletes the pods of an object that is gone, at once: the garbage collector would do so too, but seconds later, and
// the room is wanted. What it cannot delete is left to the garbage collector, which also takes the Services.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

struct reaper;

struct reaper *reaper_new(struct kube_client *client, const struct store *pods); // both borrowed
void reaper_follow(struct reaper *r, struct store *owners);                      // subscribes to it
void reaper_start(struct reaper *r);                                             // only the leader deletes
void reaper_stop(struct reaper *r);                                              // begins nothing new
bool reaper_idle(const struct reaper *r);                                        // nothing of it is in flight
void reaper_free(struct reaper *r); // after the client: every request must have ended
