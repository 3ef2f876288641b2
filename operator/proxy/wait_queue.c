// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/wait_queue.h"

#include "operator/proxy/call_dispatch.h"

#include <stdlib.h>

struct wait_queue {
    struct list of_group; // in the group's `waiting`
    struct group *group;
    struct session *session;
    struct list calls;
    bool held; // it stays while it is empty, too
};

static struct wait_queue *find(const struct group *g, const struct session *s)
{
    return list_empty(&g->waiting) ? NULL : idmap_get(&s->waits, g->serial);
}

static struct wait_queue *get(struct group *g, struct session *s)
{
    struct wait_queue *q = find(g, s);
    if (q)
        return q;
    q = xmalloc(sizeof *q);
    *q = (struct wait_queue){.group = g, .session = s};
    list_init(&q->calls);
    list_append(&g->waiting, &q->of_group);
    idmap_add(&s->waits, g->serial, q);
    return q;
}

static void free_if_over(struct wait_queue *q)
{
    if (q->held || !list_empty(&q->calls))
        return;
    list_remove(&q->of_group);
    idmap_del(&q->session->waits, q->group->serial);
    free(q);
}

void wait_queue_add(struct call *c)
{
    call_become(c, CALL_WAITING);
    c->queue = get(c->group, c->session);
    list_append(&c->queue->calls, &c->link);
}

void wait_queue_leave(struct call *c)
{
    struct wait_queue *q = TAKE_PTR(c->queue);
    bool first = q->calls.next == &c->link;
    list_remove(&c->link);
    if (first && !list_empty(&q->calls)) // the next one may not have to wait
        router_look_again(c->router, q->group);
    free_if_over(q);
}

bool wait_queue_exists(const struct group *g, const struct session *s)
{
    return find(g, s) != NULL;
}

// Until one has to wait. False: work is over.
static bool release(struct wait_queue *q, unsigned *work)
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

bool wait_queues_release(struct group *g, unsigned *work)
{
    LIST_FOREACH(l, &g->waiting) {
        struct wait_queue *q = CONTAINER_OF(l, struct wait_queue, of_group);
        q->held = true;
        bool done = release(q, work);
        q->held = false;
        free_if_over(q);
        if (!done)
            return false;
    }
    return true;
}
