// SPDX-License-Identifier: Apache-2.0
// All gangs that wait for room, and who wakes them when there may be some. If several pods leave at once, the gangs are
// woken once, in their order.
#pragma once

#include "common/base/loop.h"
#include "operator/placement/cluster.h"
#include "operator/placement/line.h"
#include "operator/reconcile/plan.h"

struct waiting;

struct waiting *waiting_new(struct loop *loop, const struct cluster *cluster); // borrowed
void waiting_free(struct waiting *w);                                          // accepts NULL

const struct line *waiting_line(const struct waiting *w);
// What wakes the objects of a kind: called for each of them that waits.
void waiting_wake_by(struct waiting *w, enum kind kind, void (*fn)(void *ctx, const char *ns, const char *name),
                     void *ctx);
void waiting_wake(const struct waiting *w, enum kind kind, const char *ns, const char *name); // one, for any reason
// Something has changed in the cluster: they are woken in a moment, if it concerns them.
void waiting_look(struct waiting *w);
// What a decision means for those that wait; plan NULL: the object is gone.
void waiting_decided(struct waiting *w, const char *uid, const struct plan *plan, int64_t now_ms);
