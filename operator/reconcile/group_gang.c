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

static struct work *work_of(struct gang_decision *g)
{
    return (struct work *)g; // its first member
}

static int32_t gpus_of(const struct work *w)
{
    const struct group_pods *c = &w->pods;
    const struct pod_constraints *needs = w->v->gang.memory->needs;
    int64_t each = -1;
    if (c->bundles)
        return c->bundles->gpus;
    for (int32_t i = 0; i < c->replicas && each < 0; i++)
        if (c->current[i])
            each = resources_get(&c->current[i]->requests, RESOURCE_GPU);
    if (each < 0 && needs)
        each = resources_get(&needs->requests, RESOURCE_GPU);
    return each < 0 ? w->wg->status.gpus : (int32_t)MIN(each / 1000, INT32_MAX / c->replicas) * c->replicas;
}

static const char *master_addr(const struct work *w)
{
    const struct group_bundles *p = w->pods.bundles;
    if (!p)
        return arena_printf(w->a, "%s:%d", group_master_host(w->wg, w->a), w->wg->spec.rendezvous_port);
    return p->master_host ? arena_printf(w->a, "%s:%d", p->master_host, p->master_port) : NULL;
}

// On bundles, it is the strategy of the existing PlacementGroups.
static const char *strategy_of(const struct group_view *v)
{
    const struct placementgroup *first = NULL;
    for (size_t i = 0; i < v->wg->spec.n_placement_groups; i++) {
        const struct placementgroup *p = v->placementgroups[i];
        if (p && first && p->spec.strategy != first->spec.strategy)
            return "Mixed";
        first = first ? first : p;
    }
    return strategy_name(first ? first->spec.strategy : v->wg->spec.strategy);
}

static struct workergroup_status status_of(const struct work *w)
{
    const struct workergroup *wg = w->wg;
    const struct group_pods *c = &w->pods;
    const struct group_progress *o = &w->progress;
    struct workergroup_status s = {
        .observed_generation = wg->obj.meta.generation,
        .world_size = group_world_size(wg),
        .ready_workers = c->ready_workers,
        .replicas = c->gang.existing,
        .ready_replicas = c->ready,
        .scheduled_replicas = c->gang.bound,
        .gpus = gpus_of(w),
        .attempt = o->attempt,
        .incarnation = w->gang.incarnation,
        .restarts = o->restarts,
        .restarts_counted = o->restarts_counted,
        .restarts_in_a_row = o->restarts_in_a_row,
        .master_addr = master_addr(w),
        .selector = group_selector(wg, w->a),
        .strategy = strategy_of(w->v),
        .last_failure = o->last_failure,
        .revision = o->revision,
    };
    if (o->of_before && wg->status.world_size) {
        s.world_size = wg->status.world_size;
        s.gpus = wg->status.gpus;
        s.master_addr = wg->status.master_addr;
        s.strategy = wg->status.strategy;
    }
    s.last_failure.message = arena_clip(w->a, s.last_failure.message, CONDITION_MESSAGE_MAX);
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

static const char *slow_of(const struct work *w)
{
    for (int32_t i = 0; w->pods.ranks.facts && i < w->pods.replicas; i++) {
        const struct agent_facts *f = w->pods.ranks.facts[i];
        if (f && f->slow)
            return arena_printf(w->a, "pod %s: ranks start without a template and import all modules themselves: %s",
                                w->pods.current[i]->obj.meta.name, f->slow);
    }
    return NULL;
}

static void draft(void *ctx, struct condition *items, size_t n, struct status_draft *ret)
{
    struct work *w = work_of(ctx);
    const struct workergroup_status *was = &w->wg->status;
    struct workergroup_status s = status_of(w);
    bool suspended = w->gang.conditions.now[SUSPENDED].status == CONDITION_TRUE;
    s.n_placements = gang_pods_placements(w->pods.current, w->pods.replicas, w->a, &s.placements);
    s.conditions = items;
    s.n_conditions = n;
    if (workergroup_status_equal(&s, was))
        return;
    ret->patch = workergroup_status_patch(&s, w->a);
    ret->urgent = suspended != conditions_was(&w->gang.conditions, SUSPENDED) || s.attempt != MAX(was->attempt, 1) ||
                  s.incarnation != was->incarnation;
    ret->restarted = s.restarts > was->restarts;
    if (w->wg->spec.worker.has_code && !str_eq(s.revision.worker, was->revision.worker))
        ret->code = code_of(w->wg, w->a);
    ret->slow = slow_of(w);
    ret->placements = gang_pods_placements_text("replicas", s.placements, s.n_placements, w->a);
}

static bool render(struct work *w, struct gang_pod *p, const char **ret_json)
{
    struct err err = ERR_INIT;
    p->attempt = w->progress.attempt;
    p->incarnation = w->gang.incarnation;
    p->hash = w->spec_hash;
    p->setup = workergroup_has_agent(w->wg) ? w->v->gang.setup : NULL;
    return group_pod_render(w->wg, p, w->a, ret_json, &err) == 0 || gang_invalid(&w->gang, err.msg);
}

static bool dry_run(struct gang_decision *g, const struct gang_dry_run *run, const char *name, const char **ret_body)
{
    (void)run;
    struct gang_pod pod = {.name = name};
    return render(work_of(g), &pod, ret_body);
}

static const char *service(struct gang_decision *g)
{
    return group_service(work_of(g)->wg, g->a);
}

// If only one pod is lost, its replacement returns to the same node, where its room has just become free. NULL: it may
// go anywhere.
static const char *old_place(struct work *w, int32_t index)
{
    static const struct resources nothing;
    const struct group_failure *f = &w->progress.last_failure;
    const struct pod_constraints *needs = w->v->gang.memory->needs;
    const char *name = arena_printf(w->a, "%s-%d-", w->wg->obj.meta.name, index);
    if (!workergroup_has_agent(w->wg) || !w->pods.gang.existing || !f->node || !f->pod || !str_starts(f->pod, name))
        return NULL;
    const struct room *r = cluster_room(w->v->gang.cluster, f->node);
    bool fits = r && node_admits(r->node, needs, w->wg->spec.topology_key) == NODE_OK &&
                room_fit(r, false, &nothing, &needs->requests) > 0;
    return fits ? f->node : NULL;
}

static bool bundles(struct gang_decision *g, bool beside, struct bundle *ret)
{
    struct work *w = work_of(g);
    for (int32_t i = 0; i < w->pods.replicas; i++) {
        const struct pod *p = beside ? w->pods.current[i] : NULL;
        ret[i] = (struct bundle){g->v->memory->needs, p ? pod_place(p) : beside ? old_place(w, i) : NULL};
    }
    return true;
}

static bool create(struct gang_decision *g, const struct placement *placed, size_t *ret_n)
{
    struct work *w = work_of(g);
    const struct group_pods *c = &w->pods;
    const struct resources *needs = &g->v->memory->needs->requests;
    struct resources *requests = arena_new(w->a, struct resources);
    *requests = (struct resources){arena_memdup(w->a, needs->items, needs->n * sizeof *needs->items), needs->n};
    *ret_n = (size_t)(c->replicas - (workergroup_has_agent(w->wg) ? c->gang.existing : 0));
    for (int32_t i = 0; i < c->replicas; i++) {
        if (c->current[i])
            continue;
        struct gang_pod pod = {
            .index = i,
            .name = group_pod_name(w->wg, i, w->gang.incarnation, w->a),
            .pin = placed->nodes[i],
        };
        const char *body;
        if (!render(w, &pod, &body))
            return false;
        gang_add_pod(g, pod.name, body, pod.pin, requests);
    }
    return true;
}

static void give_back(struct gang_decision *g, const char *reason, const char *message)
{
    struct work *w = work_of(g);
    if (w->pods.gang.existing || g->refused)
        attempt_roll_back(w, reason, message);
    else
        gang_wait(g, reason, message);
}

static bool refused_now(const struct work *w)
{
    const struct gang_memory *m = w->v->gang.memory;
    return m->refusal_reason && m->refusal_incarnation == w->pods.gang.incarnation;
}

void group_gang_init(struct work *w)
{
    static const struct gang_owner owner = {draft, dry_run, service, bundles, create, give_back};
    static const char *const types[] = {COND_ACCEPTED, COND_SCHEDULED, COND_READY,    COND_SUCCEEDED,
                                        COND_FAILED,   COND_SUSPENDED, COND_GPU_LOST, NULL};
    const struct workergroup *wg = w->wg;
    struct gang_dry_run *only = arena_new(w->a, struct gang_dry_run);
    *only = (struct gang_dry_run){.hash = w->spec_hash};
    w->gang = (struct gang_decision){
        .owner = &owner,
        .v = &w->v->gang,
        .object = &wg->obj,
        .a = w->a,
        .plan = w->plan,
        .name = wg->obj.meta.name,
        .strategy = wg->spec.strategy,
        .topology_key = wg->spec.topology_key,
        .timeout_s = wg->spec.timeout_s,
        .node_lost_s = wg->spec.node_lost_s,
        .size = wg->spec.replicas,
        .incarnation = w->pods.gang.incarnation,
        .borrowed = w->pods.bundles,
        .needs_setup = workergroup_has_agent(w->wg) && !w->pods.bundles,
        .edited = wg->status.observed_generation != wg->obj.meta.generation,
        .begun = w->pods.begun,
        .refused = refused_now(w),
        .service_first = true,
        .gone_text = "waits until the pods of an earlier attempt are gone",
        .dry_runs = only,
        .n_dry_runs = !w->pods.bundles,
        .pods = &w->pods.gang,
    };
    conditions_init(&w->gang.conditions, types, wg->obj.meta.generation, wg->status.conditions,
                    wg->status.n_conditions);
}

static void wait_for_bundles(struct work *w)
{
    const struct group_bundles *p = w->pods.bundles;
    conditions_accept(&w->gang.conditions);
    gang_wait(&w->gang, p->wait_reason ? p->wait_reason : REASON_PENDING, p->wait_message ? p->wait_message : "");
}

void group_gang_create(struct work *w)
{
    if (w->pods.bundles) {
        wait_for_bundles(w);
        return;
    }
    if (!w->gang.begun)
        w->gang.pause_ms = attempt_pause_left_ms(w, NULL);
    if (w->gang.pause_ms > 0)
        w->gang.pause_text = attempt_pause_text(w);
    gang_create(&w->gang);
}
