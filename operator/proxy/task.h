// SPDX-License-Identifier: Apache-2.0
// Calls to any rank (execute ANY): tasks. A rank has a slot for each that it can run at a time: as many as the limit of
// the method's concurrency group, one where it is in none; other calls of the same threads take slots, too. A task goes
// to the rank with the fewest calls among those that have one free; where none has, it waits here, in the order in
// which they came, and not behind the calls of a rank that may take longer than others.
#pragma once

#include "operator/proxy/head.h"
#include "operator/proxy/proxy_group.h"

// How many methods that wait for the call have slots of its group that it could use, by the `via` of its head.
uint32_t task_above(const struct group *g, const struct head *h);
// The rank for a call of this lane. False: it has to wait for a slot. `queued`: it is the first of those that do.
bool task_pick(const struct group *g, uint8_t lane, bool queued, uint32_t *ret_rank);
// Every slot is held by a method that waits for it: it would never run.
bool task_stuck(const struct group *g, uint8_t lane, uint32_t n_above);
void task_explain(const struct group *g, uint8_t lane, struct buf *out); // why one waits
