// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/release.h"

#include "operator/proxy/call_dispatch.h"
#include "operator/proxy/wait_queue.h"

// Until one has to wait. False: work is over.
static bool release_queue(struct wait_queue *q, unsigned *work)
{
    while (!list_empty(&q->calls)) {
        struct list *first = q->calls.next;
        if (*work == 0)
            return false;
        call_resubmit(CONTAINER_OF(first, struct call, link));
        if (q->calls.next == first)
            return true;
        --*work;
    }
    return true;
}

static bool release_waiting(struct group *g, unsigned *work)
{
    LIST_FOREACH(l, &g->waiting) {
        struct wait_queue *q = CONTAINER_OF(l, struct wait_queue, of_group);
        wait_queue_hold(q);
        bool done = release_queue(q, work);
        wait_queue_let_go(q);
        if (!done)
            return false;
    }
    return true;
}

static bool release_tasks(struct group *g, unsigned *work)
{
    for (size_t i = 0; i <= MEMBER_LANES_MAX; i++)
        for (const struct list *l = NULL; !list_empty(&g->tasks[i]) && l != g->tasks[i].next; --*work) {
            if (*work == 0)
                return false;
            l = g->tasks[i].next;
            call_resubmit(CONTAINER_OF(g->tasks[i].next, struct call, link)); // still the first: none has a slot
        }
    return true;
}

bool calls_release(struct group *g, unsigned *work)
{
    return release_waiting(g, work) && release_tasks(g, work);
}
