// SPDX-License-Identifier: Apache-2.0
// The calls of one client that wait for one group, in order: no call overtakes an earlier one. Calls of different
// clients do not wait for each other. Looking at a group therefore costs one step per waiting client, however many
// calls wait. call_dispatch.h sends them.
#pragma once

#include "operator/proxy/session_state.h"

struct wait_queue {
    struct list of_group; // in the group's `waiting`
    struct group *group;
    struct session *session;
    struct list calls;
};

// The last in the queue of this client and group, which is made for the first. The queue goes with the last one.
struct wait_queue *wait_queue_add(struct group *g, struct session *s, struct list *call);
void wait_queue_leave(struct wait_queue *q, struct list *call);
// The first that waits there; NULL = none, and a call of this client need not queue up behind another.
const struct list *wait_queue_first(const struct group *g, const struct session *s);
