// SPDX-License-Identifier: Apache-2.0
// Tasks: calls to any rank (execute ANY). A rank has one slot for each task that it can run at a time: as many as the
// limit of the method's concurrency group, or one for methods without a group. Other calls of the same threads also
// take slots. A task goes to the rank with the fewest calls among the ranks with a free slot. If no slot is free, it
// waits here in order of arrival. It does not wait behind the calls of one rank, because another rank may be free
// earlier.
#pragma once

#include "common/wire/call_head.h"
#include "operator/proxy/proxy_group.h"

// Returns how many slots that the call could use are taken by methods that wait for this call. The `via` of its head
// names these methods.
uint32_t task_above(const struct group *g, const struct call_head *h);
// Picks the rank for a call of this lane. False: the call has to wait for a slot. `queued`: it is the first of those
// that wait.
bool task_pick(const struct group *g, uint8_t lane, bool queued, uint32_t *ret_rank);
// Returns true if methods that wait for the call occupy every slot, so that it would never run.
bool task_stuck(const struct group *g, uint8_t lane, uint32_t n_above);
void task_explain(const struct group *g, uint8_t lane, struct buf *out); // writes why a task waits
