// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/task.h"

#include "common/base/json.h"
#include "common/wire/via.h"
#include "operator/proxy/ranking.h"

struct slots { // slots of a method's lane that methods in `via` occupy
    const struct member *member;
    const struct member_method *method;
    uint32_t n;
};

static bool count_same(void *ctx, const char *role, const char *method)
{
    struct slots *s = ctx;
    const struct member_method *above = member_method_of(s->member, role, method);
    s->n += above && above->lane == s->method->lane;
    return false;
}

uint32_t task_above(const struct group *g, const struct call_head *h)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err ignored = ERR_INIT;
    struct json *via;
    struct slots s = {.member = group_first(g)};
    if (!h->via || !s.member)
        return 0;
    s.method = member_method_of(s.member, h->role ? arena_strndup(&a, h->role, h->role_len) : NULL,
                                arena_strndup(&a, h->method, h->method_len));
    if (s.method && json_parse(h->via, h->via_len, NULL, &a, &via, &ignored) == 0)
        via_find(via, &(struct via_entry){.ns = g->ns, .group = g->name, .rank = -1}, &a, count_same, &s);
    return s.n;
}

// Among equally busy ranks, the one after the last pick comes first.
bool task_pick(const struct group *g, uint8_t lane, bool queued, uint32_t *ret_rank)
{
    if (!queued && !list_empty(&g->tasks[lane])) // no task overtakes another
        return false;
    const struct member *best = ranking_least(g->ranking, lane, g->last_any % g->world);
    *ret_rank = best ? best->rank : 0;
    return best != NULL;
}

static uint32_t all_slots(const struct group *g, uint8_t lane)
{
    uint32_t slots = 0;
    LIST_FOREACH(l, &g->members) {
        struct member *m = CONTAINER_OF(l, struct member, of_group);
        slots += m->registered ? member_lane(m, lane)->limit : 0;
    }
    return slots;
}

bool task_stuck(const struct group *g, uint8_t lane, uint32_t n_above)
{
    return n_above && n_above >= all_slots(g, lane);
}

void task_explain(const struct group *g, uint8_t lane, struct buf *out)
{
    buf_printf(out, "no slot was free: all %u of the %u ranks that are connected are busy", all_slots(g, lane),
               g->n_connected);
}
