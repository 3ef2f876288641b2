// SPDX-License-Identifier: Apache-2.0
// Pods for the bundles that have none: all that it takes is checked first, in the order in which a person would want to
// hear about it, and only then are pods created, all or none.
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/placement/planner.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/hold.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/outcome.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/turn.h"

enum { NAME_CONFLICT_RETRY_MS = 10 * 1000, SERVICE_AFTER_MS = 60 * 1000 };

// Nothing may be created yet; the conditions say why.
static void wait_for(struct hold *h, const char *reason, const char *message)
{
    hold_wait(h, reason, message);
    hold_commit(h, false);
}

static void wait_on(struct hold *h, const char *reason, const char *message)
{
    const struct condition *ready = hold_old(h, HOLD_READY);
    if (outcome_keeps_reason(ready))
        wait_for(h, ready->reason, ready->message);
    else
        wait_for(h, reason, message);
}

void hold_roll_back(struct hold *h, const char *reason, const char *message)
{
    const struct reservation *r = &h->reservation;
    for (size_t i = 0; i < r->n_live; i++)
        if (pod_label_number(r->live[i], LABEL_INCARNATION) == r->incarnation) {
            hold_delete(h, r->live[i], STAGE_FIRST);
            h->plan->rolls_back = true;
        }
    wait_for(h, reason, message);
}

static bool dead_pods_go(struct hold *h)
{
    const struct reservation *r = &h->reservation;
    if (!r->n_dead)
        return false;
    for (size_t i = 0; i < r->n_dead; i++)
        hold_delete(h, r->dead[i], STAGE_FIRST);
    if (r->own_failure) // what fails again and again is made again ever more slowly
        h->plan->rolls_back = true;
    wait_on(h, REASON_TERMINATING, "waits until the pods that held its bundles are gone");
    return true;
}

static bool backing_off(struct hold *h)
{
    const struct group_memory *m = h->v->memory;
    bool edited = h->plg->status.observed_generation != h->plg->obj.meta.generation;
    if (m->retry_at_ms <= h->v->now_ms || edited)
        return false;
    plan_requeue(h->plan, m->retry_at_ms - h->v->now_ms);
    wait_on(h, REASON_BACKOFF, "the bundles were given back; they are planned again after a backoff");
    return true;
}

static bool service_is_taken(struct hold *h)
{
    const struct service *s = h->v->service;
    if (!s || str_eq(s->obj.meta.owner.uid, h->plg->obj.meta.uid))
        return false;
    hold_set(
        h, HOLD_ACCEPTED, CONDITION_FALSE, REASON_NAME_CONFLICT,
        arena_printf(h->a,
                     "a Service %s exists that does not belong to this PlacementGroup: delete it, or give the group "
                     "another name",
                     s->obj.meta.name));
    plan_requeue(h->plan, NAME_CONFLICT_RETRY_MS); // nobody tells us when a Service that is not ours goes
    return true;
}

static int64_t bound_ms(const struct hold *h)
{
    const struct condition *scheduled = hold_old(h, HOLD_SCHEDULED);
    return scheduled && scheduled->status == CONDITION_TRUE ? scheduled->changed_ms : h->v->now_ms;
}

// A Service and the endpoints that follow from it cost the cluster more than a pod does, and only groups on the bundles
// need the names. So it comes with the first of them; or, where none comes at once, a while after the bundles are
// bound: early enough for groups that come later, and not at all for what is given back soon.
static bool needs_service(struct hold *h)
{
    if (h->v->service)
        return false;
    if (h->v->tenants)
        return true;
    if (h->reservation.bound < h->bundles.n)
        return false;
    int64_t left = bound_ms(h) + SERVICE_AFTER_MS - h->v->now_ms;
    if (left <= 0 || left > SERVICE_AFTER_MS) // a clock was set back
        return true;
    plan_requeue(h->plan, left);
    return false;
}

static void add_service(struct hold *h, int stage)
{
    if (!needs_service(h))
        return;
    struct action *x = plan_add(h->plan, ACTION_CREATE_SERVICE, stage);
    x->name = bundlepod_gang(h->plg, h->a);
    x->body = bundlepod_service(h->plg, h->a);
    plan_requeue(h->plan, 0); // that the name is taken changes no object that would wake us
}

// The name is another's, or there may be no more Services: said, and tried again later.
static bool service_is_refused(struct hold *h)
{
    const struct group_memory *m = h->v->memory;
    if (!needs_service(h) || !hold_refused_lately(h))
        return false;
    hold_set(h, HOLD_ACCEPTED, CONDITION_FALSE, m->refusal_reason, m->refusal_message);
    plan_requeue(h->plan, m->retry_at_ms - h->v->now_ms);
    return true;
}

void hold_keep_service(struct hold *h)
{
    if (!service_is_taken(h) && !service_is_refused(h))
        add_service(h, STAGE_SECOND);
}

// Accepted says why there can be no pods.
static void invalid(struct hold *h)
{
    hold_roll_back(h, h->conditions[HOLD_ACCEPTED].reason, h->conditions[HOLD_ACCEPTED].message);
}

static void wait_for_verdict(struct hold *h)
{
    const struct condition *c = &h->conditions[HOLD_ACCEPTED];
    add_service(h, STAGE_FIRST);
    if (!h->v->setup)
        hold_wait(h, REASON_PENDING, "waits for the operator's keys, which the agents of its pods need");
    else if (c->status == CONDITION_UNKNOWN && !h->reservation.n_live)
        hold_wait(h, c->reason, c->message);
    hold_commit(h, false);
}

// What one bundle asks for when it is planned. The bundles of a node share one pod: a thousandth of a pod each makes
// sure that there is room for one, and no more. What the pod has besides (sidecars, overhead) counts with each of them,
// which keeps on the safe side.
static bool find_needs(struct hold *h)
{
    struct bundles *b = &h->bundles;
    struct err err = ERR_INIT;
    for (int32_t i = 0; i < b->n; i++) {
        struct bundle_shape *shape = bundle_shape(b, i);
        if (shape->needs)
            continue;
        struct pod_constraints *needs = arena_new(h->a, struct pod_constraints);
        if (bundlepod_needs(b, h->v->memory->dry_run_pod, &i, 1, h->a, needs, &err) < 0) {
            hold_set(h, HOLD_ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE, arena_strdup(h->a, err.msg));
            return false;
        }
        for (size_t k = 0; k < needs->requests.n && h->plg->spec.pod_per == POD_PER_NODE; k++)
            if (needs->requests.items[k].id == RESOURCE_PODS)
                needs->requests.items[k].milli = 1;
        shape->needs = needs;
    }
    return true;
}

// The bundles that one new pod will hold.
struct share {
    const char *node;
    int32_t *items;
    size_t n;
};

static size_t share_out(struct hold *h, const struct placement *placed, struct share **ret)
{
    const struct bundles *b = &h->bundles;
    bool per_node = h->plg->spec.pod_per == POD_PER_NODE;
    struct map by_node = MAP_INIT;
    struct share *shares = arena_array(h->a, (size_t)b->n, sizeof *shares), **of;
    size_t n = 0;
    of = arena_array(h->a, (size_t)b->n, sizeof(struct share *));
    for (int32_t i = 0; i < b->n; i++) {
        if (h->reservation.holder[i])
            continue;
        of[i] = per_node ? map_get(&by_node, placed->nodes[i]) : NULL;
        if (!of[i]) {
            of[i] = &shares[n++];
            of[i]->node = placed->nodes[i];
            if (per_node)
                map_set(&by_node, placed->nodes[i], of[i]);
        }
        of[i]->n++;
    }
    map_done(&by_node);
    for (size_t i = 0; i < n; i++) {
        shares[i].items = arena_array(h->a, shares[i].n, sizeof *shares[i].items);
        shares[i].n = 0;
    }
    for (int32_t i = 0; i < b->n; i++)
        if (of[i])
            of[i]->items[of[i]->n++] = i;
    *ret = shares;
    return n;
}

// A pod of one bundle has its index; the others count up, and new ones take what is free.
static int32_t *free_indexes(struct hold *h, const struct share *shares, size_t n)
{
    const struct reservation *r = &h->reservation;
    size_t all = n + r->n_live, found = 0;
    bool *taken = arena_array(h->a, all, sizeof *taken);
    int32_t *indexes = arena_array(h->a, n, sizeof *indexes);
    for (size_t i = 0; i < r->n_live; i++) {
        int32_t index = pod_label_number(r->live[i], LABEL_INDEX);
        if (index >= 0 && (size_t)index < all)
            taken[index] = true;
    }
    if (h->plg->spec.pod_per == POD_PER_BUNDLE) {
        for (size_t i = 0; i < n; i++)
            indexes[i] = shares[i].items[0];
        return indexes;
    }
    for (size_t i = 0; found < n; i++)
        if (!taken[i])
            indexes[found++] = (int32_t)i;
    return indexes;
}

// Pods that hold the same shapes ask for the same. NULL: Accepted says why it cannot be had.
static const struct pod_constraints *needs_of(struct hold *h, const struct share *share, struct map *known)
{
    const char *shapes = bundles_shapes_text(&h->bundles, share->items, share->n, h->a);
    struct pod_constraints *needs = map_get(known, shapes);
    struct err err = ERR_INIT;
    if (needs)
        return needs;
    needs = arena_new(h->a, struct pod_constraints);
    if (bundlepod_needs(&h->bundles, h->v->memory->dry_run_pod, share->items, share->n, h->a, needs, &err) < 0) {
        hold_set(h, HOLD_ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE, arena_strdup(h->a, err.msg));
        return NULL;
    }
    map_set(known, shapes, needs);
    return needs;
}

static bool create_pod(struct hold *h, const struct share *share, int32_t index, struct map *known)
{
    struct bundlepod pod = {
        .index = index,
        .name = bundlepod_name(h->plg, index, h->incarnation, h->a),
        .pin = share->node,
        .items = share->items,
        .n = share->n,
    };
    const char *body;
    const struct pod_constraints *needs = needs_of(h, share, known);
    if (!needs || !hold_render(h, &pod, &body))
        return false;
    struct action *x = plan_add(h->plan, ACTION_CREATE_POD, STAGE_SECOND);
    x->name = pod.name;
    x->body = body;
    x->node = arena_strdup(h->a, pod.pin);
    x->requests = &needs->requests;
    return true;
}

static bool create_missing(struct hold *h, const struct placement *placed, size_t *ret_n)
{
    struct share *shares;
    struct map known = MAP_INIT; // shapes of a pod -> struct pod_constraints
    size_t n = share_out(h, placed, &shares), i = 0;
    const int32_t *indexes = free_indexes(h, shares, n);
    while (i < n && create_pod(h, &shares[i], indexes[i], &known))
        i++;
    map_done(&known);
    plan_requeue(h->plan, 0); // a refusal changes no object that would wake us
    *ret_n = n;
    return i == n;
}

// `beside`: what is held stays where it is.
static struct gang gang_of(struct hold *h, bool beside)
{
    const struct bundles *b = &h->bundles;
    const struct group_memory *m = h->v->memory;
    struct bundle *items = arena_array(h->a, (size_t)b->n, sizeof *items);
    for (int32_t i = 0; i < b->n; i++) {
        const struct pod *p = beside ? h->reservation.holder[i] : NULL;
        items[i] = (struct bundle){bundle_shape(b, i)->needs, p ? reservation_place(p) : NULL};
    }
    return (struct gang){
        .strategy = h->plg->spec.strategy,
        .topology_key = h->plg->spec.topology_key,
        .bundles = items,
        .n_bundles = (size_t)b->n,
        .avoid = m->contended,
        .n_avoid = m->n_contended,
    };
}

// *ret_message: of a gang that has not been placed.
static void plan_places(struct hold *h, struct gang gang, struct placement *ret, const char **ret_message)
{
    struct turn_request request = {
        .cluster = h->v->cluster,
        .line = h->v->line,
        .owner = &h->plg->obj,
        .scheduled = hold_old(h, HOLD_SCHEDULED),
        .resumes = h->reservation.n_live,
        .now_ms = h->v->now_ms,
    };
    turn_place(&request, &gang, h->a, h->plan, ret);
    if (ret->verdict != VERDICT_PLACED)
        *ret_message = turn_message(&request, &gang, ret, h->a);
}

bool hold_hopeless(struct hold *h)
{
    struct placement placed;
    const char *message = "";
    if (!hold_tried(h) || !find_needs(h))
        return false;
    struct gang gang = gang_of(h, false);
    planner_place(h->v->cluster, &gang, h->a, &placed);
    if (placed.verdict != VERDICT_INFEASIBLE)
        return false;
    plan_places(h, gang, &placed, &message); // those in the line are asked again when nodes change
    h->plan->waits_for_room = true;
    hold_set(h, HOLD_ACCEPTED, CONDITION_FALSE, REASON_INFEASIBLE, message);
    return true;
}

static void place(struct hold *h)
{
    struct placement placed;
    const char *message = "";
    size_t n = 0;
    if (!find_needs(h)) {
        invalid(h);
        return;
    }
    plan_places(h, gang_of(h, true), &placed, &message);
    if (placed.verdict == VERDICT_PLACED) {
        add_service(h, STAGE_SECOND);
        if (!create_missing(h, &placed, &n)) {
            plan_init(h->plan, h->a); // all or none
            invalid(h);
            return;
        }
        hold_wait(
            h, REASON_CREATING,
            arena_printf(h->a, "%zu pod%s being created%s", n, n == 1 ? " is" : "s are", turn_victims(&placed, h->a)));
        hold_commit(h, false);
        return;
    }
    const char *reason = placed.verdict == VERDICT_INFEASIBLE ? REASON_INFEASIBLE : REASON_INSUFFICIENT;
    hold_roll_back(h, reason, message); // of pods from before a crash; where they are, the others cannot be
    h->plan->waits_for_room = !h->plan->rolls_back;
}

// The API server refused a pod, which costs all that were made with it.
static bool refused(struct hold *h)
{
    const struct group_memory *m = h->v->memory;
    if (!hold_refused_lately(h))
        return false;
    if (str_eq(m->refusal_reason, REASON_NAME_CONFLICT))
        hold_set(h, HOLD_ACCEPTED, CONDITION_FALSE, m->refusal_reason, m->refusal_message);
    else if (hold_forbids_this(h))
        hold_forbidden(h);
    plan_requeue(h->plan, m->retry_at_ms - h->v->now_ms);
    hold_roll_back(h, m->refusal_reason, m->refusal_message);
    return true;
}

void hold_create(struct hold *h)
{
    if (refused(h) || dead_pods_go(h))
        return;
    if (service_is_taken(h)) {
        invalid(h);
        return;
    }
    if (backing_off(h))
        return;
    switch (hold_judge(h)) {
    case HOLD_OK:
        place(h);
        break;
    case HOLD_REFUSED:
        invalid(h);
        break;
    case HOLD_UNKNOWN:
        wait_for_verdict(h);
        break;
    }
}
