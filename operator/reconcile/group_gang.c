// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/group_gang.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/draft.h"
#include "operator/api/pod_constraints.h"
#include "operator/placement/node_admission.h"
#include "operator/placement/room.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/gang_create.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>

static struct group_decision *decision_of(struct gang_decision *g)
{
    return (struct group_decision *)g; // its first member
}

static int32_t gpus_of(const struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    const struct pod_constraints *needs = d->v->gang.memory->needs;
    int64_t each = -1;
    if (c->bundles)
        return c->bundles->gpus;
    for (int32_t i = 0; i < c->replicas && each < 0; i++)
        if (c->current[i])
            each = resources_get(&c->current[i]->requests, RESOURCE_GPU);
    if (each < 0 && needs)
        each = resources_get(&needs->requests, RESOURCE_GPU);
    return each < 0 ? d->wg->status.gpus : (int32_t)MIN(each / 1000, INT32_MAX / c->replicas) * c->replicas;
}

static const char *master_addr(const struct group_decision *d)
{
    const struct group_bundles *p = d->pods.bundles;
    if (!p)
        return arena_printf(d->a, "%s:%d", group_master_host(d->wg, d->a), d->wg->spec.rendezvous_port);
    return p->master_host ? arena_printf(d->a, "%s:%d", p->master_host, p->master_port) : NULL;
}

// On bundles, it is the strategy of the existing PlacementGroups.
static const char *strategy_of(const struct group_view *v)
{
    const struct placementgroup *first = NULL;
    for (size_t i = 0; i < v->wg->spec.n_placement_groups; i++) {
        const struct placementgroup *p = v->placementgroups[i];
        if (p && first && p->spec.gang.strategy != first->spec.gang.strategy)
            return "Mixed";
        first = first ? first : p;
    }
    return strategy_name(first ? first->spec.gang.strategy : v->wg->spec.gang.strategy);
}

static struct workergroup_status status_of(const struct group_decision *d)
{
    const struct workergroup *wg = d->wg;
    const struct group_pods *c = &d->pods;
    const struct group_progress *o = &d->progress;
    struct workergroup_status s = {
        .observed_generation = wg->obj.meta.generation,
        .world_size = group_world_size(wg),
        .ready_workers = c->ready_workers,
        .replicas = c->gang.existing,
        .ready_replicas = c->ready,
        .scheduled_replicas = c->gang.bound,
        .gpus = gpus_of(d),
        .attempt = o->attempt,
        .incarnation = d->gang.incarnation,
        .restarts = o->restarts,
        .restarts_counted = o->restarts_counted,
        .restarts_in_a_row = o->restarts_in_a_row,
        .master_addr = master_addr(d),
        .selector = group_selector(wg, d->a),
        .strategy = strategy_of(d->v),
        .last_failure = o->last_failure,
        .revision = o->revision,
    };
    if (o->of_before && wg->status.world_size) {
        s.world_size = wg->status.world_size;
        s.gpus = wg->status.gpus;
        s.master_addr = wg->status.master_addr;
        s.strategy = wg->status.strategy;
    }
    s.last_failure.message = arena_clip(d->a, s.last_failure.message, CONDITION_MESSAGE_MAX);
    return s;
}

// A reader of Events should see whose code runs. The object itself does not say who wrote it by hand.
static const char *code_of(const struct workergroup *wg, struct arena *a)
{
    const struct worker_spec *s = &wg->spec.worker;
    const char *who = labels_get(&wg->obj.meta.annotations, ANNOTATION_CREATED_BY);
    return arena_printf(a, "the ranks run the code in spec.worker.code, sent by %s: SHA-256 %s, %" PRId64 " bytes",
                        who ? who : "the author of the object (the API server's audit log has the name)",
                        s->code_sha256, s->code_size);
}

static const char *slow_of(const struct group_decision *d)
{
    for (int32_t i = 0; d->pods.ranks.facts && i < d->pods.replicas; i++) {
        const struct agent_facts *f = d->pods.ranks.facts[i];
        if (f && f->slow)
            return arena_printf(d->a, "pod %s: ranks start without a template and import all modules themselves: %s",
                                d->pods.current[i]->obj.meta.name, f->slow);
    }
    return NULL;
}

static void draft(void *ctx, struct condition *items, size_t n, struct status_draft *ret)
{
    struct group_decision *d = decision_of(ctx);
    const struct workergroup_status *was = &d->wg->status;
    struct workergroup_status s = status_of(d);
    bool suspended = d->gang.conditions.now[SUSPENDED].status == CONDITION_TRUE;
    s.n_placements = gang_pods_placements(d->pods.current, d->pods.replicas, d->a, &s.placements);
    s.conditions = items;
    s.n_conditions = n;
    if (workergroup_status_equal(&s, was))
        return;
    ret->patch = workergroup_status_patch(&s, d->a);
    ret->urgent = suspended != conditions_was(&d->gang.conditions, SUSPENDED) || s.attempt != MAX(was->attempt, 1) ||
                  s.incarnation != was->incarnation;
    ret->restarted = s.restarts > was->restarts;
    if (d->wg->spec.worker.has_code && !str_eq(s.revision.worker, was->revision.worker))
        ret->code = code_of(d->wg, d->a);
    ret->slow = slow_of(d);
    ret->placements = gang_pods_placements_text("replicas", s.placements, s.n_placements, d->a);
}

static bool render(struct group_decision *d, struct gang_pod *p, const char **ret_json)
{
    struct err err = ERR_INIT;
    p->attempt = d->progress.attempt;
    p->incarnation = d->gang.incarnation;
    p->hash = d->spec_hash;
    p->setup = workergroup_has_agent(d->wg) ? d->v->gang.setup : NULL;
    return group_pod_render(d->wg, p, d->a, ret_json, &err) == 0 || gang_invalid(&d->gang, err.msg);
}

static bool dry_run(struct gang_decision *g, const struct gang_dry_run *run, const char *name, const char **ret_body)
{
    (void)run;
    struct gang_pod pod = {.name = name};
    return render(decision_of(g), &pod, ret_body);
}

static const char *service(struct gang_decision *g)
{
    return group_service(decision_of(g)->wg, g->a);
}

// If only one pod is lost, its replacement returns to the same node, where its room has just become free. NULL: it may
// go anywhere.
static const char *old_place(struct group_decision *d, int32_t index)
{
    static const struct resources nothing;
    const struct group_failure *f = &d->progress.last_failure;
    const struct pod_constraints *needs = d->v->gang.memory->needs;
    const char *name = arena_printf(d->a, "%s-%d-", d->wg->obj.meta.name, index);
    if (!workergroup_has_agent(d->wg) || !d->pods.gang.existing || !f->node || !f->pod || !str_starts(f->pod, name))
        return NULL;
    const struct room *r = cluster_room(d->v->gang.cluster, f->node);
    bool fits = r && node_admits(r->node, needs, d->wg->spec.gang.topology_key) == NODE_OK &&
                room_fit(r, false, &nothing, &needs->requests) > 0;
    return fits ? f->node : NULL;
}

static bool bundles(struct gang_decision *g, bool beside, struct bundle *ret)
{
    struct group_decision *d = decision_of(g);
    for (int32_t i = 0; i < d->pods.replicas; i++) {
        const struct pod *p = beside ? d->pods.current[i] : NULL;
        ret[i] = (struct bundle){g->v->memory->needs, p ? pod_place(p) : beside ? old_place(d, i) : NULL};
    }
    return true;
}

static bool create(struct gang_decision *g, const struct placement *placed, size_t *ret_n)
{
    struct group_decision *d = decision_of(g);
    const struct group_pods *c = &d->pods;
    const struct resources *needs = &g->v->memory->needs->requests;
    struct resources *requests = arena_new(d->a, struct resources);
    *requests = (struct resources){arena_memdup(d->a, needs->items, needs->n * sizeof *needs->items), needs->n};
    *ret_n = (size_t)(c->replicas - (workergroup_has_agent(d->wg) ? c->gang.existing : 0));
    for (int32_t i = 0; i < c->replicas; i++) {
        if (c->current[i])
            continue;
        struct gang_pod pod = {
            .index = i,
            .name = group_pod_name(d->wg, i, d->gang.incarnation, d->a),
            .pin = placed->nodes[i],
        };
        const char *body;
        if (!render(d, &pod, &body))
            return false;
        gang_add_pod(g, pod.name, body, pod.pin, requests);
    }
    return true;
}

static void give_back(struct gang_decision *g, const char *reason, const char *message)
{
    struct group_decision *d = decision_of(g);
    if (d->pods.gang.existing || g->refused)
        attempt_give_back(d, reason, message);
    else
        gang_wait(g, reason, message);
}

static int32_t node_lost_s(struct gang_decision *g, const struct pod *p)
{
    return group_bundles_node_lost_s(decision_of(g)->v, p);
}

static bool refused_now(const struct group_decision *d)
{
    const struct gang_memory *m = d->v->gang.memory;
    return m->refusal_reason && m->refusal_incarnation == d->pods.gang.incarnation;
}

void group_gang_init(struct group_decision *d)
{
    static const struct gang_owner owner = {draft, dry_run, service, bundles, create, give_back, node_lost_s};
    static const char *const types[] = {COND_ACCEPTED, COND_SCHEDULED, COND_READY,    COND_SUCCEEDED,
                                        COND_FAILED,   COND_SUSPENDED, COND_GPU_LOST, NULL};
    const struct workergroup *wg = d->wg;
    struct gang_dry_run *only = arena_new(d->a, struct gang_dry_run);
    *only = (struct gang_dry_run){.hash = d->spec_hash};
    d->gang = (struct gang_decision){
        .owner = &owner,
        .v = &d->v->gang,
        .object = &wg->obj,
        .a = d->a,
        .plan = d->plan,
        .name = wg->obj.meta.name,
        .spec = &wg->spec.gang,
        .size = wg->spec.replicas,
        .incarnation = d->pods.gang.incarnation,
        .on_bundles = d->pods.bundles,
        .needs_setup = workergroup_has_agent(d->wg) && !d->pods.bundles,
        .edited = wg->status.observed_generation != wg->obj.meta.generation,
        .begun = d->pods.begun,
        .refused = refused_now(d),
        .service_first = true,
        .gone_text = "waits until the pods of an earlier attempt are gone",
        .dry_runs = only,
        .n_dry_runs = !d->pods.bundles,
        .pods = &d->pods.gang,
    };
    conditions_init(&d->gang.conditions, types, wg->obj.meta.generation, wg->status.conditions,
                    wg->status.n_conditions);
}

static void wait_for_bundles(struct group_decision *d)
{
    const struct group_bundles *p = d->pods.bundles;
    conditions_accept(&d->gang.conditions);
    gang_wait(&d->gang, p->wait_reason ? p->wait_reason : REASON_PENDING, p->wait_message ? p->wait_message : "");
}

void group_gang_create(struct group_decision *d)
{
    if (d->pods.bundles) {
        wait_for_bundles(d);
        return;
    }
    if (!d->gang.begun)
        d->gang.pause_ms = attempt_pause_left_ms(d);
    if (d->gang.pause_ms > 0)
        d->gang.pause_text = attempt_pause_text(d);
    gang_create(&d->gang);
}
