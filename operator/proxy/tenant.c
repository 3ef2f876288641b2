// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/tenant.h"

#include "operator/proxy/weights.h"

#include <stdlib.h>

#define SLICE_MIN 64u // of work: less is not worth a step

uint32_t tenant_weight(const struct router *r, const char *ns)
{
    return weights_of(r->config.weights, ns);
}

struct tenant *tenant_get(struct router *r, const char *ns)
{
    struct tenant *t = map_get(&r->tenants, ns);
    if (t)
        return tenant_ref(t);
    uint32_t weight = tenant_weight(r, ns);
    t = xcalloc(1, sizeof *t);
    *t = (struct tenant){
        .router = r, .ns = xstrdup(ns), .refs = 1, .weight = weight, .quota = quota_new_fair(r->bytes, weight)};
    list_init(&t->charged);
    list_init(&t->jobs);
    list_init(&t->with_jobs);
    list_init(&t->behind);
    list_init(&t->failing);
    list_init(&t->ended);
    list_init(&t->gone);
    list_init(&t->stale);
    map_set(&r->tenants, ns, t);
    return t;
}

struct tenant *tenant_ref(struct tenant *t)
{
    t->refs++;
    return t;
}

void tenant_unref(struct tenant *t)
{
    if (--t->refs)
        return;
    map_del(&t->router->tenants, t->ns);
    list_remove(&t->charged);
    deadlines_done(&t->deadlines);
    quota_unref(t->quota);
    free(t->ns);
    free(t);
}

void tenant_enter(struct tenant *t)
{
    t->n_sessions++;
    t->router->n_sessions++;
}

void tenant_leave(struct tenant *t)
{
    t->n_sessions--;
    t->router->n_sessions--;
}

int tenant_check_calls(const struct tenant *t, struct err *err)
{
    uint32_t all = t->router->n_calls, most = t->router->config.total_calls;
    if (all >= most)
        return err_set(err, ERR_THROTTLED, "%u calls are in progress here; no more at a time, try again", all);
    if (t->n_calls >= (uint64_t)t->weight * (most - all))
        return err_set(err, ERR_THROTTLED,
                       "the clients of namespace %s have %u calls in progress here, which is its part of the %u that "
                       "are free; wait for some of them, or give it a higher weight (--namespace-weights)",
                       t->ns, t->n_calls, most - all);
    return 0;
}

int tenant_check_sessions(struct router *r, const char *ns, struct err *err)
{
    const struct tenant *t = map_get(&r->tenants, ns);
    uint32_t most = r->config.total_sessions, left = most - MIN(most, r->n_sessions);
    if (!most || (left && !t) || (t && t->n_sessions < (uint64_t)t->weight * left))
        return 0;
    return err_set(err, ERR_THROTTLED,
                   "the clients of namespace %s have %u connections here, which is its part of the %u that are free; "
                   "close some of them, or give it a higher weight (--namespace-weights)",
                   ns, t ? t->n_sessions : 0, left);
}

void tenant_explain(const struct tenant *t, const struct quota *session, struct err *err)
{
    if (quota_left(t->quota) <= quota_left(session))
        err_set(
            err, ERR_THROTTLED,
            "the calls and answers of namespace %s take %zu bytes here, and may take no more; read the answers, wait "
            "for some of the calls, or give it more (--namespace-weights, or a higher memory limit of the operator)",
            t->ns, quota_used(t->quota));
    else
        err_set(err, ERR_THROTTLED,
                "this connection's calls take %zu bytes; no room for more until some of them are answered",
                quota_used(session));
}

static uint32_t turn_of(const struct tenant *t)
{
    return (uint32_t)MIN((uint64_t)t->router->level * t->weight, (uint64_t)TENANT_TURN);
}

static void charge(struct tenant *t, size_t units)
{
    t->spent = (uint32_t)MIN(t->spent + units, (uint64_t)TENANT_OWES * TENANT_TURN);
    if (list_empty(&t->charged))
        list_append(&tenant_ref(t)->router->charged, &t->charged);
}

void tenant_spend(struct tenant *t, size_t units)
{
    struct router *r = t->router;
    r->worked = (uint32_t)MIN(r->worked + units, (size_t)TENANT_TURN_MAX);
    charge(t, units);
}

void tenant_ends_turn(struct tenant *t)
{
    charge(t, turn_of(t) - MIN(t->spent, turn_of(t)));
}

bool tenant_has_turn(const struct tenant *t)
{
    return t->spent < turn_of(t) && (t->router->worked < TENANT_TURN_MAX || !t->spent);
}

size_t tenant_slice(const struct tenant *t)
{
    uint32_t part = t->router->worked < TENANT_TURN_MAX ? turn_of(t) : 0;
    return (size_t)MAX(part, SLICE_MIN) * TENANT_UNIT_BYTES;
}

bool tenant_may_go_on(const struct router *r, const char *ns)
{
    const struct tenant *t = map_get(&r->tenants, ns);
    return !t || tenant_has_turn(t);
}

// Returns the work that a weight of 1 may do in the next turn, if all namespaces want as much as in the last one.
// Namespaces that used up their parts share by weight the work that the others left.
static uint32_t share_out(const struct router *r)
{
    uint64_t all = 0, wanting = 0, others = 0;
    LIST_FOREACH(l, &r->charged) {
        const struct tenant *t = CONTAINER_OF(l, struct tenant, charged);
        bool wants = !tenant_has_turn(t);
        all += t->weight;
        wanting += wants ? t->weight : 0;
        others += wants ? 0 : t->spent;
    }
    if (!wanting && others <= TENANT_TURN)
        return TENANT_TURN;
    uint64_t left = TENANT_TURN - MIN(others, (uint64_t)TENANT_TURN);
    uint64_t level = MAX(wanting ? left / wanting : 0, TENANT_TURN / all);
    return (uint32_t)MIN(MAX(level, UINT64_C(1)), (uint64_t)TENANT_TURN);
}

bool tenants_next_turn(struct router *r)
{
    bool owes = false;
    r->level = share_out(r);
    r->worked = 0;
    LIST_FOREACH(l, &r->charged) {
        struct tenant *t = CONTAINER_OF(l, struct tenant, charged);
        t->spent -= MIN(t->spent, turn_of(t));
        owes |= !tenant_has_turn(t);
        if (!t->spent) {
            list_remove(&t->charged);
            tenant_unref(t);
        }
    }
    return owes;
}

// The router's deadlines contain the first deadline of each namespace.
static void follow(struct tenant *t)
{
    const struct deadline *first = deadlines_first(&t->deadlines);
    if (!first)
        deadlines_del(&t->router->deadlines, &t->due);
    else if (!t->due.index || t->due.at != first->at)
        deadlines_add(&t->router->deadlines, &t->due, first->at);
}

void tenant_deadline(struct tenant *t, struct deadline *d, int64_t at)
{
    deadlines_add(&t->deadlines, d, at);
    follow(t);
}

void tenant_no_deadline(struct tenant *t, struct deadline *d)
{
    deadlines_del(&t->deadlines, d);
    follow(t);
}

void tenant_falls_behind(struct tenant *t)
{
    if (list_empty(&t->behind))
        list_append(&tenant_ref(t)->router->behind, &t->behind);
}

void tenants_due(struct router *r, int64_t now_ms)
{
    for (struct deadline *first; (first = deadlines_first(&r->deadlines)) && first->at <= now_ms;) {
        deadlines_del(&r->deadlines, first); // the namespace comes back after its calls have got their errors
        tenant_falls_behind(CONTAINER_OF(first, struct tenant, due));
    }
}

void tenant_look_again(struct tenant *t, struct group *g)
{
    if (list_empty(&g->stale))
        list_append(&t->stale, &g->stale);
    tenant_falls_behind(t);
}
