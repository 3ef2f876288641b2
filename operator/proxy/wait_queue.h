// SPDX-License-Identifier: Apache-2.0
// The calls of one client that wait for one group, in the order in which they came: none passes an earlier one. Those
// of different clients do not wait for each other, so however many there are, looking at a group takes as many steps as
// it has clients that wait.
#ifndef CADRE_PROXY_WAIT_QUEUE_H
#define CADRE_PROXY_WAIT_QUEUE_H

#include "operator/proxy/call.h"

struct wait_queue;

// The call becomes CALL_WAITING, the last in the queue of its client and group.
void wait_queue_add(struct call *c);
// It waits no more: for call_become(). The queue goes with the last one.
void wait_queue_leave(struct call *c);
// Whether a call of this client would have to queue up behind another.
bool wait_queue_exists(const struct group *g, const struct session *s);

// Sends the calls that need not wait any longer, at most *work of them, which it counts down. False: there may be more.
bool wait_queues_release(struct group *g, unsigned *work);

#endif
