// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/placementgroup_gang.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod_constraints.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/gang_manifest.h"
#include "operator/reconcile/gang_verdict.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>
#include <string.h>

enum { SERVICE_AFTER_MS = 60 * 1000 };

static struct placementgroup_decision *decision_of(struct gang_decision *g)
{
    return (struct placementgroup_decision *)g; // its first member
}

static struct placementgroup_status status_of(const struct placementgroup_decision *d)
{
    const struct placementgroup_status *old = &d->plg->status;
    struct placementgroup_status s = {
        .observed_generation = d->plg->obj.meta.generation,
        .bundles = d->bundles.n,
        .bound_bundles = d->pods.bound,
        .gpus = d->bundles.gpus,
        .incarnation = d->gang.incarnation,
    };
    s.n_placements = gang_pods_placements(d->pods.pod_of, d->bundles.n, d->a, &s.placements);
    s.nodes = (int32_t)s.n_placements;
    if (!d->bundles.n) { // nobody knows what the spec asks for, and the pods of an earlier spec still exist
        s.bundles = old->bundles;
        s.bound_bundles = old->bound_bundles;
        s.gpus = old->gpus;
        s.nodes = old->nodes;
        s.placements = old->placements;
        s.n_placements = old->n_placements;
    }
    return s;
}

static void draft(void *ctx, struct condition *items, size_t n, struct status_draft *ret)
{
    struct placementgroup_decision *d = decision_of(ctx);
    struct placementgroup_status s = status_of(d);
    int32_t was = d->plg->status.incarnation;
    s.conditions = items;
    s.n_conditions = n;
    if (placementgroup_status_equal(&s, &d->plg->status))
        return;
    ret->patch = placementgroup_status_patch(&s, d->a);
    ret->urgent = d->gang.incarnation != was;
    ret->restarted = d->gang.incarnation > was && str_eq(d->gang.conditions.now[READY].reason, REASON_RESTARTING);
    ret->placements = gang_pods_placements_text("bundles", s.placements, s.n_placements, d->a);
}

static bool render(struct placementgroup_decision *d, struct bundlepod *p, const char **ret_json)
{
    struct err err = ERR_INIT;
    p->pod.incarnation = d->gang.incarnation;
    p->pod.hash = d->template_hash;
    p->pod.setup = d->v->gang.setup;
    return bundlepod_render(d->plg, &d->bundles, p, d->a, ret_json, &err) == 0 || gang_invalid(&d->gang, err.msg);
}

static bool dry_run(struct gang_decision *g, const struct gang_dry_run *run, const char *name, const char **ret_body)
{
    struct bundlepod pod = {.pod.name = name, .items = &run->bundle, .n = 1};
    return render(decision_of(g), &pod, ret_body);
}

static int32_t first_of(const struct bundles *b, size_t shape)
{
    int32_t i = 0;
    while (b->shape[i] != shape)
        i++;
    return i;
}

// The pods that the API server checks: one pod with a bundle of each shape, because a rule (a LimitRange, a policy) may
// allow one shape and refuse another. If there are more shapes than can be remembered, their creation shows whether
// they are allowed.
static size_t dry_runs(const struct placementgroup_decision *d, struct gang_dry_run **ret)
{
    const struct bundles *b = &d->bundles;
    size_t n = MIN(b->n_shapes, (size_t)DRY_RUNS_FURTHER + 1);
    *ret = arena_array(d->a, n, sizeof **ret);
    for (size_t i = 0; i < n; i++) {
        const char *text = arena_printf(d->a, "%016" PRIx64 " %016" PRIx64, d->template_hash, b->shapes[i].hash);
        (*ret)[i] = (struct gang_dry_run){str_hash(text, strlen(text)), first_of(b, i)};
    }
    return n;
}

static int64_t bound_ms(const struct placementgroup_decision *d)
{
    const struct condition *scheduled = conditions_old(&d->gang.conditions, SCHEDULED);
    return scheduled && scheduled->status == CONDITION_TRUE ? scheduled->changed_ms : d->v->gang.now_ms;
}

// A Service, with the endpoints that follow from it, costs the cluster more than a pod, and only groups on the bundles
// need the names. So the Service comes with the first group. If no group comes soon, it comes a while after the bundles
// are bound. That is early enough for groups that come later, and PlacementGroups that are given back soon never get a
// Service.
static const char *service(struct gang_decision *g)
{
    struct placementgroup_decision *d = decision_of(g);
    int64_t left = bound_ms(d) + SERVICE_AFTER_MS - g->v->now_ms;
    bool late = left <= 0 || left > SERVICE_AFTER_MS; // or a clock was set back
    if (!d->v->used && d->pods.bound < d->bundles.n)
        return NULL;
    if (d->v->used || late)
        return bundlepod_service(d->plg, d->a);
    plan_requeue(g->plan, left);
    return NULL;
}

// The requests of one bundle when it is planned. The bundles of a node share one pod. Each bundle counts as a
// thousandth of a pod slot, so the node needs one free slot. The other requests of the pod (sidecars, overhead) count
// with each bundle, which is on the safe side.
static bool find_needs(struct placementgroup_decision *d)
{
    struct bundles *b = &d->bundles;
    struct err err = ERR_INIT;
    for (int32_t i = 0; i < b->n; i++) {
        struct bundle_shape *shape = bundle_shape(b, i);
        if (shape->needs)
            continue;
        struct pod_constraints *needs = arena_new(d->a, struct pod_constraints);
        if (bundlepod_needs(b, d->v->gang.memory->dry_run_pod, &i, 1, d->a, needs, &err) < 0)
            return gang_invalid(&d->gang, err.msg);
        for (size_t k = 0; k < needs->requests.n && d->plg->spec.gang.pod_per == POD_PER_NODE; k++)
            if (needs->requests.items[k].id == RESOURCE_PODS)
                needs->requests.items[k].milli = 1;
        shape->needs = needs;
    }
    return true;
}

static bool bundles(struct gang_decision *g, bool beside, struct bundle *ret)
{
    struct placementgroup_decision *d = decision_of(g);
    if (!find_needs(d))
        return false;
    for (int32_t i = 0; i < d->bundles.n; i++) {
        const struct pod *p = beside ? d->pods.pod_of[i] : NULL;
        ret[i] = (struct bundle){bundle_shape(&d->bundles, i)->needs, p ? pod_place(p) : NULL};
    }
    return true;
}

struct new_pod { // a pod to create, with these bundles
    const char *node;
    int32_t *items;
    size_t n;
};

static size_t new_pods(struct placementgroup_decision *d, const struct placement *placed, struct new_pod **ret)
{
    const struct bundles *b = &d->bundles;
    bool per_node = d->plg->spec.gang.pod_per == POD_PER_NODE;
    struct map by_node = MAP_INIT;
    struct new_pod *pods = arena_array(d->a, (size_t)b->n, sizeof *pods), **of;
    size_t n = 0;
    of = arena_array(d->a, (size_t)b->n, sizeof(struct new_pod *));
    for (int32_t i = 0; i < b->n; i++) {
        if (d->pods.pod_of[i])
            continue;
        of[i] = per_node ? map_get(&by_node, placed->nodes[i]) : NULL;
        if (!of[i]) {
            of[i] = &pods[n++];
            of[i]->node = placed->nodes[i];
            if (per_node)
                map_set(&by_node, placed->nodes[i], of[i]);
        }
        of[i]->n++;
    }
    map_done(&by_node);
    for (size_t i = 0; i < n; i++) {
        pods[i].items = arena_array(d->a, pods[i].n, sizeof *pods[i].items);
        pods[i].n = 0;
    }
    for (int32_t i = 0; i < b->n; i++)
        if (of[i])
            of[i]->items[of[i]->n++] = i;
    *ret = pods;
    return n;
}

// A pod of one bundle has the bundle's index. Other pods count up, and new pods take the free indexes.
static int32_t *free_indexes(struct placementgroup_decision *d, const struct new_pod *pods, size_t n)
{
    const struct gang_pods *there = &d->pods.gang;
    size_t all = n + there->n_live, found = 0;
    bool *taken = arena_array(d->a, all, sizeof *taken);
    int32_t *indexes = arena_array(d->a, n, sizeof *indexes);
    for (size_t i = 0; i < there->n_live; i++) {
        int32_t index = pod_label_number(there->live[i], LABEL_INDEX);
        if (index >= 0 && (size_t)index < all)
            taken[index] = true;
    }
    if (d->plg->spec.gang.pod_per == POD_PER_BUNDLE) {
        for (size_t i = 0; i < n; i++)
            indexes[i] = pods[i].items[0];
        return indexes;
    }
    for (size_t i = 0; found < n; i++)
        if (!taken[i])
            indexes[found++] = (int32_t)i;
    return indexes;
}

// Pods with the same shapes request the same. NULL: Accepted says why there can be no such pod.
static const struct pod_constraints *needs_of(struct placementgroup_decision *d, const struct new_pod *pod,
                                              struct map *known)
{
    const char *shapes = bundles_shapes_text(&d->bundles, pod->items, pod->n, d->a);
    struct pod_constraints *needs = map_get(known, shapes);
    struct err err = ERR_INIT;
    if (needs)
        return needs;
    needs = arena_new(d->a, struct pod_constraints);
    if (bundlepod_needs(&d->bundles, d->v->gang.memory->dry_run_pod, pod->items, pod->n, d->a, needs, &err) < 0) {
        gang_invalid(&d->gang, err.msg);
        return NULL;
    }
    map_set(known, shapes, needs);
    return needs;
}

static bool create_pod(struct placementgroup_decision *d, const struct new_pod *new, int32_t index, struct map *known)
{
    struct bundlepod pod = {
        .pod.index = index,
        .pod.name = bundlepod_name(d->plg, index, d->gang.incarnation, d->a),
        .pod.pin = new->node,
        .items = new->items,
        .n = new->n,
    };
    const char *body;
    const struct pod_constraints *needs = needs_of(d, new, known);
    if (!needs || !render(d, &pod, &body))
        return false;
    gang_add_pod(&d->gang, pod.pod.name, body, new->node, &needs->requests);
    return true;
}

static bool create(struct gang_decision *g, const struct placement *placed, size_t *ret_n)
{
    struct placementgroup_decision *d = decision_of(g);
    struct new_pod *pods;
    struct map known = MAP_INIT; // shapes of a pod -> struct pod_constraints
    size_t n = new_pods(d, placed, &pods), i = 0;
    const int32_t *indexes = free_indexes(d, pods, n);
    while (i < n && create_pod(d, &pods[i], indexes[i], &known))
        i++;
    map_done(&known);
    *ret_n = n;
    return i == n;
}

// Only the pods of the present incarnation go. Earlier ones stay.
static void give_back(struct gang_decision *g, const char *reason, const char *message)
{
    const struct placementgroup_pods *r = &decision_of(g)->pods;
    for (size_t i = 0; i < r->gang.n_live; i++)
        if (pod_label_number(r->gang.live[i], LABEL_INCARNATION) == r->gang.incarnation) {
            gang_delete_pod(g, r->gang.live[i], STAGE_FIRST);
            g->plan->gives_back = true;
        }
    if (g->refused)
        plan_requeue(g->plan, g->v->memory->retry_at_ms - g->v->now_ms);
    gang_wait(g, reason, message);
}

void placementgroup_gang_init(struct placementgroup_decision *d)
{
    static const struct gang_owner owner = {draft, dry_run, service, bundles, create, give_back, NULL};
    static const char *const types[] = {COND_ACCEPTED, COND_SCHEDULED, COND_READY, COND_FAILED, NULL};
    const struct placementgroup *plg = d->plg;
    const struct placementgroup_status *s = &plg->status;
    d->gang = (struct gang_decision){
        .owner = &owner,
        .v = &d->v->gang,
        .object = &plg->obj,
        .a = d->a,
        .plan = d->plan,
        .name = bundlepod_gang(plg, d->a),
        .spec = &plg->spec.gang,
        .size = d->bundles.n,
        .incarnation = d->pods.gang.incarnation,
        .needs_setup = true,
        .edited = s->observed_generation != plg->obj.meta.generation,
        .gone_text = "waits until the pods that had its bundles are gone",
        .pods = &d->pods.gang,
    };
    d->gang.n_dry_runs = dry_runs(d, &d->gang.dry_runs);
    d->gang.refused = gang_verdict_refused_lately(&d->gang);
    conditions_init(&d->gang.conditions, types, plg->obj.meta.generation, s->conditions, s->n_conditions);
    conditions_alive(&d->gang.conditions);
}
