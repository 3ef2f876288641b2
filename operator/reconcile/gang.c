// SPDX-License-Identifier: Apache-2.0
// Creating the missing pods of a group: all that it takes is checked first, in the order in which a person would want
// to hear about it, and only then are pods created, all or none.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/placement/planner.h"
#include "operator/placement/room.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/turn.h"
#include "operator/reconcile/work.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_CONFLICT_RETRY_MS = 10 * 1000, SETUP_RETRY_MS = 1000 };

// Nothing may be created yet; the outcome says why.
static void wait_for(struct work *w, const char *reason, const char *message)
{
    outcome_wait(&w->outcome, reason, message);
    work_settle(w);
}

static void wait_on(struct work *w, const char *reason, const char *message)
{
    const struct condition *ready = outcome_old(w->wg, READY);
    if (outcome_keeps_reason(ready))
        wait_for(w, ready->reason, ready->message);
    else
        wait_for(w, reason, message);
}

static bool stale_pods_go(struct work *w)
{
    const struct census *c = &w->census;
    if (!c->n_stale)
        return false;
    for (size_t i = 0; i < c->n_stale; i++)
        work_delete(w, c->stale[i], STAGE_FIRST);
    wait_on(w, REASON_TERMINATING, "waits until the pods of an earlier attempt are gone");
    return true;
}

static bool backing_off(struct work *w)
{
    const struct group_memory *m = w->v->memory;
    if (w->census.begun)
        return false; // a creation that was interrupted goes on
    if (m->retry_at_ms > w->v->now_ms && !outcome_old_spec(w->wg)) {
        plan_requeue(w->plan, m->retry_at_ms - w->v->now_ms);
        wait_on(w, REASON_BACKOFF, "the gang was given back; it is planned again after a backoff");
        return true;
    }
    int64_t left = work_backoff_left(w, NULL);
    if (left <= 0)
        return false;
    plan_requeue(w->plan, left);
    wait_for(w, REASON_BACKOFF, work_backoff_text(w));
    return true;
}

static void add_service(struct work *w, int stage)
{
    if (w->v->service)
        return;
    struct action *x = plan_add(w->plan, ACTION_CREATE_SERVICE, stage);
    x->name = w->wg->obj.meta.name;
    x->body = group_service(w->wg, w->a);
}

static bool service_is_taken(struct work *w)
{
    const struct service *s = w->v->service;
    if (!s || str_eq(s->obj.meta.owner.uid, w->wg->obj.meta.uid))
        return false;
    outcome_set(&w->outcome, ACCEPTED, CONDITION_FALSE, REASON_NAME_CONFLICT,
                arena_printf(w->a,
                             "a Service %s exists that does not belong to this WorkerGroup: delete it, or give the "
                             "group another name",
                             s->obj.meta.name));
    plan_requeue(w->plan, NAME_CONFLICT_RETRY_MS); // nobody tells us when a Service that is not ours goes
    return true;
}

void gang_keep_service(struct work *w)
{
    if (!w->census.pooled && !service_is_taken(w))
        add_service(w, STAGE_SECOND);
}

static bool render(struct work *w, struct group_pod *p, const char **ret_json)
{
    struct err err = ERR_INIT;
    p->attempt = w->outcome.attempt;
    p->incarnation = w->outcome.incarnation;
    p->spec_hash = w->spec_hash;
    p->setup = w->wg->spec.runtime == RUNTIME_AGENT ? w->v->setup : NULL;
    if (group_pod_render(w->wg, p, w->a, ret_json, &err) == 0)
        return true;
    outcome_set(&w->outcome, ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE, arena_strdup(w->a, err.msg));
    return false;
}

static enum template_verdict refused(struct work *w, const char *message)
{
    outcome_set(&w->outcome, ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE,
                arena_printf(w->a, "the API server refuses the template: %s", message));
    return TEMPLATE_REFUSED;
}

static bool refused_now(const struct work *w)
{
    const struct group_memory *m = w->v->memory;
    return m->refusal_reason && m->refusal_incarnation == w->census.incarnation;
}

static enum template_verdict ask(struct work *w)
{
    // No pod of the namespace may have the name.
    struct group_pod pod = {.name = arena_printf(w->a, "%s-dry-run-%016" PRIx64, w->wg->obj.meta.name, w->spec_hash)};
    const char *body;
    if (!render(w, &pod, &body))
        return TEMPLATE_REFUSED;
    struct action *x = plan_add(w->plan, ACTION_DRY_RUN, STAGE_FIRST);
    x->body = body;
    x->hash = w->spec_hash;
    plan_requeue(w->plan, 0); // the answer changes no object that would wake us
    const struct condition *old = outcome_old(w->wg, ACCEPTED);
    if (!old || old->status == CONDITION_UNKNOWN || old->observed_generation != w->outcome.generation)
        outcome_set(&w->outcome, ACCEPTED, CONDITION_UNKNOWN, REASON_CHECKING, "the API server checks the template");
    return TEMPLATE_UNKNOWN;
}

static bool dry_run_passed(const struct work *w)
{
    const struct group_memory *m = w->v->memory;
    return m->dry_run == DRY_RUN_OK && m->dry_run_hash == w->spec_hash;
}

// The verdict comes with the API server's defaults, limit ranges and injected containers.
enum template_verdict gang_judge(struct work *w)
{
    const struct group_memory *m = w->v->memory;
    if (w->census.pooled) { // it has none
        work_accept(w);
        return TEMPLATE_OK;
    }
    if (w->wg->spec.runtime == RUNTIME_AGENT && !w->v->setup) {
        plan_requeue(w->plan, SETUP_RETRY_MS);
        return TEMPLATE_UNKNOWN;
    }
    bool lately = refused_now(w) && m->retry_at_ms > w->v->now_ms;
    if (m->dry_run == DRY_RUN_REFUSED && m->dry_run_hash == w->spec_hash)
        return refused(w, m->dry_run_message);
    // The quota is looked at last, when the template has passed; and it may be the pods before that fill it.
    if (dry_run_passed(w) || (lately && str_eq(m->refusal_reason, REASON_QUOTA_EXCEEDED))) {
        work_accept(w);
        return TEMPLATE_OK;
    }
    if (lately && str_eq(m->refusal_reason, REASON_FORBIDDEN)) {
        plan_requeue(w->plan, m->retry_at_ms - w->v->now_ms);
        return refused(w, m->refusal_message);
    }
    return ask(w);
}

static bool create_missing(struct work *w, const struct placement *placed)
{
    const struct census *c = &w->census;
    const struct resources *needs = &w->v->memory->needs->requests;
    struct resources *requests = arena_new(w->a, struct resources);
    *requests = (struct resources){arena_memdup(w->a, needs->items, needs->n * sizeof *needs->items), needs->n};
    for (int32_t i = 0; i < c->replicas; i++) {
        if (c->current[i])
            continue;
        struct group_pod pod = {
            .index = i,
            .name = group_pod_name(w->wg, i, w->outcome.incarnation, w->a),
            .pin = placed->nodes[i],
        };
        const char *body;
        if (!render(w, &pod, &body))
            return false;
        struct action *x = plan_add(w->plan, ACTION_CREATE_POD, STAGE_SECOND);
        x->name = pod.name;
        x->body = body;
        x->node = arena_strdup(w->a, placed->nodes[i]);
        x->requests = requests;
    }
    plan_requeue(w->plan, 0); // a refusal changes no object that would wake us
    return true;
}

// Accepted says why there can be no pods.
static void invalid(struct work *w)
{
    const struct condition *c = &w->outcome.conditions[ACCEPTED];
    if (w->census.existing)
        work_roll_back(w, c->reason, c->message); // from before a crash
    else
        wait_for(w, c->reason, c->message);
}

static const struct room *room_of(const struct work *w, const char *node)
{
    const struct room *const *rooms = cluster_rooms(w->v->cluster);
    for (size_t i = 0; i < cluster_nodes(w->v->cluster); i++)
        if (str_eq(rooms[i]->name, node))
            return rooms[i];
    return NULL;
}

// A pod that is lost alone comes back to its node, where its room has just become free. NULL: it may go anywhere.
static const char *old_place(struct work *w, int32_t index)
{
    static const struct resources nothing;
    const struct group_failure *f = &w->outcome.last_failure;
    const struct pod_constraints *needs = w->v->memory->needs;
    const char *name = arena_printf(w->a, "%s-%d-", w->wg->obj.meta.name, index);
    if (w->wg->spec.runtime != RUNTIME_AGENT || !w->census.existing || !f->node || !f->pod || !str_starts(f->pod, name))
        return NULL;
    const struct room *r = room_of(w, f->node);
    bool fits = r && node_admits(r->node, needs, w->wg->spec.topology_key) == NODE_OK &&
                room_fit(r, false, &nothing, &needs->requests) > 0;
    return fits ? f->node : NULL;
}

// `beside`: its pods that are there stay where they are.
static struct gang gang_of(struct work *w, bool beside)
{
    const struct census *c = &w->census;
    const struct group_memory *m = w->v->memory;
    struct bundle *bundles = arena_array(w->a, (size_t)c->replicas, sizeof *bundles);
    for (int32_t i = 0; i < c->replicas; i++) {
        const struct pod *p = beside ? c->current[i] : NULL;
        const char *node = p ? (p->node ? p->node : p->pin) : beside ? old_place(w, i) : NULL;
        bundles[i] = (struct bundle){m->needs, node};
    }
    return (struct gang){
        .strategy = w->wg->spec.strategy,
        .topology_key = w->wg->spec.topology_key,
        .bundles = bundles,
        .n_bundles = (size_t)c->replicas,
        .avoid = m->contended,
        .n_avoid = m->n_contended,
    };
}

static struct turn_request request_of(struct work *w)
{
    return (struct turn_request){
        .cluster = w->v->cluster,
        .line = w->v->line,
        .owner = &w->wg->obj,
        .scheduled = outcome_old(w->wg, SCHEDULED),
        .resumes = w->census.existing,
        .now_ms = w->v->now_ms,
    };
}

// Those in the line are asked again when nodes change.
const char *gang_hopeless(struct work *w)
{
    if (w->census.pooled || !dry_run_passed(w))
        return NULL;
    struct gang gang = gang_of(w, false);
    struct placement placed;
    planner_place(w->v->cluster, &gang, w->a, &placed);
    if (placed.verdict != VERDICT_INFEASIBLE)
        return NULL;
    struct turn_request request = request_of(w);
    turn_place(&request, &gang, w->a, w->plan, &placed);
    w->plan->waits_for_room = true;
    return turn_message(&request, &gang, &placed, w->a);
}

static void place(struct work *w)
{
    const struct census *c = &w->census;
    struct gang gang = gang_of(w, true);
    struct turn_request request = request_of(w);
    struct placement placed;
    turn_place(&request, &gang, w->a, w->plan, &placed);
    if (placed.verdict == VERDICT_PLACED) {
        add_service(w, STAGE_FIRST); // where the name is taken, no pod is made
        if (!create_missing(w, &placed)) {
            plan_init(w->plan, w->a); // all or none
            invalid(w);
            return;
        }
        int32_t n = w->wg->spec.runtime == RUNTIME_AGENT ? c->replicas - c->existing : c->replicas;
        outcome_wait(
            &w->outcome, REASON_CREATING,
            arena_printf(w->a, "%d pod%s being created%s", n, n == 1 ? " is" : "s are", turn_victims(&placed, w->a)));
        work_settle(w);
        return;
    }
    const char *message = turn_message(&request, &gang, &placed, w->a);
    if (c->existing) { // from before a crash; where they are, the others cannot be
        work_roll_back(w, REASON_INSUFFICIENT, message);
        return;
    }
    w->plan->waits_for_room = true;
    wait_for(w, placed.verdict == VERDICT_INFEASIBLE ? REASON_INFEASIBLE : REASON_INSUFFICIENT, message);
}

static void wait_for_verdict(struct work *w)
{
    const struct condition *c = &w->outcome.conditions[ACCEPTED];
    add_service(w, STAGE_FIRST);
    if (w->wg->spec.runtime == RUNTIME_AGENT && !w->v->setup)
        outcome_wait(&w->outcome, REASON_PENDING, "waits for the operator's keys, which the agents of its pods need");
    else if (c->status == CONDITION_UNKNOWN && !w->census.existing)
        outcome_wait(&w->outcome, c->reason, c->message);
    work_settle(w);
}

static void refusal_costs_the_gang(struct work *w)
{
    const struct group_memory *m = w->v->memory;
    if (str_eq(m->refusal_reason, REASON_NAME_CONFLICT))
        outcome_set(&w->outcome, ACCEPTED, CONDITION_FALSE, m->refusal_reason, m->refusal_message);
    else if (str_eq(m->refusal_reason, REASON_FORBIDDEN) && !dry_run_passed(w))
        refused(w, m->refusal_message);
    else
        work_accept(w);
    work_roll_back(w, m->refusal_reason, m->refusal_message);
}

static void wait_for_bundles(struct work *w)
{
    const struct pooled *p = w->census.pooled;
    work_accept(w);
    wait_for(w, p->wait_reason ? p->wait_reason : REASON_PENDING, p->wait_message ? p->wait_message : "");
}

void gang_create(struct work *w)
{
    if (w->census.pooled) {
        wait_for_bundles(w);
        return;
    }
    if (refused_now(w)) {
        refusal_costs_the_gang(w);
        return;
    }
    if (stale_pods_go(w))
        return;
    if (service_is_taken(w)) {
        invalid(w);
        return;
    }
    if (backing_off(w))
        return;
    switch (gang_judge(w)) {
    case TEMPLATE_OK:
        place(w);
        break;
    case TEMPLATE_REFUSED:
        invalid(w);
        break;
    case TEMPLATE_UNKNOWN:
        wait_for_verdict(w);
        break;
    }
}
