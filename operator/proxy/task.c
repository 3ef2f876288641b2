// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/task.h"

static bool has_slot(struct member *m, uint8_t lane)
{
    const struct member_lane *l = member_lane(m, lane);
    return l->n_pending < l->limit;
}

// The next ones in turn come first among equals.
bool task_pick(struct call *c)
{
    struct group *g = c->group;
    const struct member *best = NULL;
    if (!c->queued && !list_empty(&g->tasks[c->lane])) // none overtakes
        return false;
    for (uint32_t i = 0; i < g->world; i++) {
        struct member *m = g->ranks[((uint64_t)c->router->last_any + i) % g->world].member;
        if (m && has_slot(m, c->lane) && (!best || m->n_pending < best->n_pending))
            best = m;
    }
    c->first = best ? best->rank : 0;
    return best != NULL;
}

void task_queue(struct call *c)
{
    c->queued = true;
    list_append(&c->group->tasks[c->lane], &c->link);
}

void tasks_release(struct group *g)
{
    for (size_t i = 0; i <= MEMBER_LANES_MAX; i++)
        for (const struct list *l = NULL; !list_empty(&g->tasks[i]) && l != g->tasks[i].next;) {
            l = g->tasks[i].next;
            call_resubmit(CONTAINER_OF(g->tasks[i].next, struct call, link)); // still the first: none has a slot
        }
}

void tasks_explain(const struct call *c, struct buf *out)
{
    const struct group *g = c->group;
    uint32_t slots = 0;
    for (uint32_t i = 0; i < g->world; i++)
        slots += g->ranks[i].member ? member_lane(g->ranks[i].member, c->lane)->limit : 0;
    buf_printf(out, "no slot was free: all %u of the %u ranks that are connected are busy", slots, g->n_connected);
}
