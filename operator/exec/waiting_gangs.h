// SPDX-License-Identifier: Apache-2.0
// All gangs that wait for room, and the functions that wake them when there may be room. If several pods leave at once,
// it wakes the gangs once, in the order of the line.
#pragma once

#include "common/base/loop.h"
#include "operator/placement/cluster.h"
#include "operator/placement/line.h"
#include "operator/reconcile/plan.h"

struct waiting_gangs;

struct waiting_gangs *waiting_gangs_new(struct loop *loop, const struct cluster *cluster); // borrowed
void waiting_gangs_free(struct waiting_gangs *w);                                          // accepts NULL

const struct line *waiting_gangs_line(const struct waiting_gangs *w);
// Sets the function that wakes objects of this kind. It is called for each object that waits.
void waiting_gangs_wake_by(struct waiting_gangs *w, enum kind kind,
                           void (*fn)(void *ctx, const char *ns, const char *name), void *ctx);
void waiting_gangs_wake(const struct waiting_gangs *w, enum kind kind, const char *ns,
                        const char *name); // wakes one object
// Call this when something has changed in the cluster. It wakes the gangs in a moment, if the change concerns them.
void waiting_gangs_look(struct waiting_gangs *w);
// Notes what a decision means for the line. `plan` is NULL if the object is gone.
void waiting_gangs_decided(struct waiting_gangs *w, const char *uid, const struct plan *plan, int64_t now_ms);
