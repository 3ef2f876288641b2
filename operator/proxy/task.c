// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/task.h"

#include "common/base/json.h"
#include "common/wire/via.h"
#include "operator/proxy/call_dispatch.h"

struct slots { // of a method
    const struct member *member;
    const struct member_method *method;
    uint32_t n;
};

static const struct member_method *find_method(const struct member *m, const char *role, const char *method)
{
    const struct member_role *r = member_role(m, role);
    return r ? member_method(r, method) : NULL;
}

static bool count_same(void *ctx, const char *role, const char *method)
{
    struct slots *s = ctx;
    const struct member_method *above = find_method(s->member, role, method);
    s->n += above && above->lane == s->method->lane;
    return false;
}

uint32_t task_above(const struct group *g, const struct head *h)
{
    struct arena a = ARENA_INIT;
    struct err ignored = ERR_INIT;
    struct json *via;
    struct slots s = {.member = group_first(g)};
    if (!h->via || !s.member)
        return 0;
    s.method = find_method(s.member, h->role ? arena_strndup(&a, h->role, h->role_len) : NULL,
                           arena_strndup(&a, h->method, h->method_len));
    if (s.method && json_parse(h->via, h->via_len, NULL, &a, &via, &ignored) == 0)
        via_find(via, &(struct via_place){.ns = g->ns, .group = g->name, .rank = -1}, &a, count_same, &s);
    arena_done(&a);
    return s.n;
}

static bool has_slot(struct member *m, uint8_t lane)
{
    const struct member_lane *l = member_lane(m, lane);
    return l->n_pending < l->limit;
}

// The next ones in turn come first among equals.
bool task_pick(struct request *q, const struct group *g, bool queued)
{
    const struct member *best = NULL;
    if (!queued && !list_empty(&g->tasks[q->lane])) // none overtakes
        return false;
    for (uint32_t i = 0; i < g->world; i++) {
        struct member *m = g->ranks[((uint64_t)g->last_any + i) % g->world].member;
        if (m && has_slot(m, q->lane) && (!best || m->n_pending < best->n_pending))
            best = m;
    }
    q->first = best ? best->rank : 0;
    return best != NULL;
}

void task_queue(struct call *c)
{
    call_become(c, CALL_QUEUED);
    list_append(&c->group->tasks[c->req.lane], &c->link);
}

bool tasks_release(struct group *g, unsigned *work)
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

static uint32_t all_slots(const struct request *q, const struct group *g)
{
    uint32_t slots = 0;
    for (uint32_t i = 0; i < g->world; i++)
        slots += g->ranks[i].member ? member_lane(g->ranks[i].member, q->lane)->limit : 0;
    return slots;
}

bool task_stuck(const struct request *q, const struct group *g)
{
    return q->n_above && q->n_above >= all_slots(q, g);
}

void tasks_explain(const struct call *c, struct buf *out)
{
    buf_printf(out, "no slot was free: all %u of the %u ranks that are connected are busy",
               all_slots(&c->req, c->group), c->group->n_connected);
}
