// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/wait_queue.h"

#include "operator/proxy/tenant.h"

#include <stdlib.h>

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

struct wait_queue *wait_queue_add(struct group *g, struct session *s, struct list *call)
{
    struct wait_queue *q = get(g, s);
    list_append(&q->calls, call);
    return q;
}

void wait_queue_leave(struct wait_queue *q, struct list *call)
{
    bool first = q->calls.next == call;
    list_remove(call);
    if (first && !list_empty(&q->calls)) // the next call may not have to wait
        tenant_look_again(q->session->tenant, q->group);
    if (!list_empty(&q->calls))
        return;
    list_remove(&q->of_group);
    idmap_del(&q->session->waits, q->group->serial);
    free(q);
}

const struct list *wait_queue_first(const struct group *g, const struct session *s)
{
    const struct wait_queue *q = find(g, s);
    return q ? q->calls.next : NULL;
}
