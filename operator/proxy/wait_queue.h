// SPDX-License-Identifier: Apache-2.0
// The calls of one client that wait for one group, in order: no call overtakes an earlier one. Calls of different
// clients do not wait for each other. A look at a group therefore costs one step for each client that waits, however
// many calls wait. call_queue.h sends them.
#pragma once

#include "operator/proxy/session_state.h"

struct wait_queue {
    struct list of_group; // in the group's `waiting`
    struct group *group;
    struct session *session;
    struct list calls;
};

// Adds a call at the end of the queue of this client and group. The queue exists from its first call to its last.
struct wait_queue *wait_queue_add(struct group *g, struct session *s, struct list *call);
void wait_queue_leave(struct wait_queue *q, struct list *call);
// The first call that waits there; NULL = none, so that a further call of this client need not wait behind another.
const struct list *wait_queue_first(const struct group *g, const struct session *s);
