// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang.h"

#include "common/base/str.h"
#include "operator/reconcile/gang_place.h"
#include "operator/reconcile/patience.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>

enum { NAME_CONFLICT_RETRY_MS = 10 * 1000, SETUP_RETRY_MS = 1000, STALE_CACHE_MS = 1000 };

void gang_commit(struct gang_decision *g, bool at_once)
{
    struct status_writer w = {
        .draft = g->owner->draft,
        .ctx = g,
        .resource_version = g->object->meta.resource_version,
        .wanted_ms = g->v->memory->status_wanted_ms,
        .moving = g->v->moving,
        .now_ms = g->v->now_ms,
    };
    conditions_commit(&g->conditions, &w, at_once, g->a, g->plan);
}

void gang_settle(struct gang_decision *g)
{
    if (g->pods->look_again_ms >= 0)
        plan_requeue(g->plan, g->pods->look_again_ms);
    gang_commit(g, g->status_first);
}

void gang_wait(struct gang_decision *g, const char *reason, const char *message)
{
    conditions_wait(&g->conditions, reason, message);
    gang_settle(g);
}

void gang_postpone(struct gang_decision *g)
{
    patience_keep(g->v->memory, g->plan);
    g->plan->waits[PATIENCE_STATUS] = g->pods->status;
    plan_requeue(g->plan, STALE_CACHE_MS);
}

int32_t gang_next(int32_t n)
{
    return n < INT32_MAX ? n + 1 : n;
}

void gang_begin_incarnation(struct gang_decision *g, const char *reason, const char *message)
{
    conditions_wait(&g->conditions, reason, message);
    g->incarnation = gang_next(g->incarnation);
    gang_commit(g, true);
}

bool gang_invalid(struct gang_decision *g, const char *message)
{
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE, arena_strdup(g->a, message));
    return false;
}

void gang_add_pod(struct gang_decision *g, const char *name, const char *body, const char *node,
                  const struct resources *requests)
{
    struct action *x = plan_add(g->plan, ACTION_CREATE_POD, STAGE_SECOND);
    x->name = name;
    x->body = body;
    x->node = arena_strdup(g->a, node);
    x->requests = requests;
}

void gang_delete_pod(struct gang_decision *g, const struct pod *p, int stage)
{
    bool lost = pod_node_gone(g->v->cluster, p, g->node_lost_s, g->v->now_ms, NULL);
    if (!g->borrowed || !(lost || pod_terminal(p)))
        plan_delete_pod(g->plan, p, lost, stage);
}

void gang_delete_gone(struct gang_decision *g, int stage)
{
    for (size_t i = 0; i < g->pods->n_gone; i++)
        gang_delete_pod(g, g->pods->gone[i], stage);
}

static void wait_on(struct gang_decision *g, const char *reason, const char *message)
{
    const struct condition *ready = conditions_old(&g->conditions, READY);
    if (conditions_keep_reason(&g->conditions))
        gang_wait(g, ready->reason, ready->message);
    else
        gang_wait(g, reason, message);
}

static bool old_pods_go(struct gang_decision *g)
{
    if (!g->pods->n_gone)
        return false;
    gang_delete_gone(g, STAGE_FIRST);
    if (g->pods->own_failure) // a gang whose pods fail again and again is created again ever more slowly
        g->plan->rolls_back = true;
    wait_on(g, REASON_TERMINATING, g->gone_text);
    return true;
}

static bool backing_off(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (g->begun)
        return false; // an interrupted creation continues
    if (m->retry_at_ms > g->v->now_ms && !g->edited) {
        plan_requeue(g->plan, m->retry_at_ms - g->v->now_ms);
        wait_on(g, REASON_BACKOFF, "all pods were deleted; the group is planned again after a backoff");
        return true;
    }
    if (g->pause_ms <= 0)
        return false;
    plan_requeue(g->plan, g->pause_ms);
    gang_wait(g, REASON_BACKOFF, g->pause_text);
    return true;
}

static const char *missing_service(struct gang_decision *g)
{
    return g->v->service ? NULL : g->owner->service(g);
}

static void add_service(struct gang_decision *g, int stage)
{
    const char *body = missing_service(g);
    if (!body)
        return;
    struct action *x = plan_add(g->plan, ACTION_CREATE_SERVICE, stage);
    x->name = g->name;
    x->body = body;
    plan_requeue(g->plan, 0); // a name that is taken changes no object that would wake us
}

static bool service_is_taken(struct gang_decision *g)
{
    const struct service *s = g->v->service;
    if (!s || str_eq(s->obj.meta.owner.uid, g->object->meta.uid))
        return false;
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, REASON_NAME_CONFLICT,
                   arena_printf(g->a,
                                "a Service %s exists that does not belong to this %s: delete it, or give the group "
                                "another name",
                                s->obj.meta.name, kind_info(g->object->kind)->kind));
    plan_requeue(g->plan, NAME_CONFLICT_RETRY_MS); // nobody tells us when a Service of another owner goes
    return true;
}

// The API server refused the Service: another owner has the name, or a quota allows no more Services. Accepted says so,
// and the plan tries later.
static bool service_is_refused(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (!gang_refused_lately(g) || !missing_service(g))
        return false;
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, m->refusal_reason, m->refusal_message);
    plan_requeue(g->plan, m->retry_at_ms - g->v->now_ms);
    return true;
}

// If the Service has gone although the gang has its pods, it is created again.
static void keep_service(struct gang_decision *g)
{
    if (!service_is_taken(g) && !service_is_refused(g))
        add_service(g, STAGE_SECOND);
}

static bool passed(const struct gang_decision *g, size_t i)
{
    const struct gang_memory *m = g->v->memory;
    if (i == 0)
        return m->dry_run == DRY_RUN_OK && g->n_trials && m->dry_run_hash == g->trials[0].hash;
    for (size_t k = 0; k < DRY_RUNS_FURTHER; k++)
        if (m->further[k] == g->trials[i].hash)
            return true;
    return false;
}

// The latest trial that was made, NULL = it was of another spec.
static const struct gang_trial *last_trial(const struct gang_decision *g)
{
    for (size_t i = 0; i < g->n_trials; i++)
        if (g->trials[i].hash == g->v->memory->dry_run_hash)
            return &g->trials[i];
    return NULL;
}

// The latest trial was of the present spec, and was refused for a reason that may pass without a change of the spec.
static bool forbidden(const struct gang_decision *g)
{
    return g->v->memory->dry_run == DRY_RUN_NONE && last_trial(g);
}

bool gang_refused_lately(const struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    bool of_another = m->dry_run == DRY_RUN_NONE && m->dry_run_hash && !last_trial(g);
    return m->refusal_reason && m->retry_at_ms > g->v->now_ms && !of_another;
}

static enum gang_verdict accepted(struct gang_decision *g)
{
    conditions_accept(&g->conditions);
    return GANG_OK;
}

static enum gang_verdict refused(struct gang_decision *g, const char *message)
{
    const struct gang_trial *t = last_trial(g);
    const char *what =
        t && g->n_trials > 1 ? arena_printf(g->a, "a pod with bundle %" PRId32, t->bundle) : "the template";
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE,
                   arena_printf(g->a, "the API server refuses %s: %s", what, message));
    return GANG_REFUSED;
}

// The API server checks the quota last, so the template has passed. And it may be the present pods that fill the quota.
static enum gang_verdict judge_forbidden(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (str_eq(m->refusal_reason, REASON_QUOTA_EXCEEDED))
        return accepted(g);
    return refused(g, m->refusal_message);
}

static bool add_trial(struct gang_decision *g, size_t i)
{
    const struct gang_trial *t = &g->trials[i];
    // No pod of the namespace may have this name.
    const char *name = arena_printf(g->a, "%s-dry-run-%016" PRIx64, g->name, t->hash), *body;
    if (!g->owner->trial(g, t, name, &body))
        return false;
    struct action *x = plan_add(g->plan, ACTION_DRY_RUN, STAGE_FIRST);
    x->body = body;
    x->hash = t->hash;
    x->further = i > 0;
    x->name = arena_printf(g->a, "with bundle %" PRId32, t->bundle);
    return true;
}

// Asks about all pods that are not known yet, at once.
static enum gang_verdict ask(struct gang_decision *g)
{
    for (size_t i = 0; i < g->n_trials; i++)
        if (!passed(g, i) && !add_trial(g, i)) {
            plan_init(g->plan, g->a);
            return GANG_REFUSED;
        }
    plan_requeue(g->plan, 0); // the answer changes no object that would wake us
    const struct condition *old = conditions_old(&g->conditions, ACCEPTED);
    if (!old || old->status == CONDITION_UNKNOWN || old->observed_generation != g->conditions.generation)
        conditions_set(&g->conditions, ACCEPTED, CONDITION_UNKNOWN, REASON_CHECKING,
                       "the API server checks the template");
    return GANG_UNKNOWN;
}

// The answer also contains the API server's defaults, limit ranges and injected containers.
enum gang_verdict gang_judge(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    size_t n = 0;
    if (g->needs_setup && !g->v->setup) {
        plan_requeue(g->plan, SETUP_RETRY_MS);
        return GANG_UNKNOWN;
    }
    if (m->dry_run == DRY_RUN_REFUSED && last_trial(g))
        return refused(g, m->dry_run_message);
    if (g->refused && forbidden(g) && gang_refused_lately(g)) {
        enum gang_verdict verdict = judge_forbidden(g);
        if (verdict == GANG_REFUSED)
            plan_requeue(g->plan, m->retry_at_ms - g->v->now_ms);
        return verdict;
    }
    while (n < g->n_trials && passed(g, n))
        n++;
    return n < g->n_trials ? ask(g) : accepted(g);
}

// Accepted says why there can be no pods.
static void give_back_refused(struct gang_decision *g)
{
    const struct condition *c = &g->conditions.now[ACCEPTED];
    g->owner->give_back(g, c->reason, c->message);
}

static bool gang_of(struct gang_decision *g, bool beside, struct gang *ret)
{
    struct bundle *bundles = arena_array(g->a, (size_t)g->size, sizeof *bundles);
    *ret = (struct gang){
        .strategy = g->strategy,
        .topology_key = g->topology_key,
        .bundles = bundles,
        .n_bundles = (size_t)g->size,
        .avoid = g->v->memory->contended,
        .n_avoid = g->v->memory->n_contended,
    };
    return g->owner->bundles(g, beside, bundles);
}

static struct gang_place_request request_of(const struct gang_decision *g)
{
    return (struct gang_place_request){
        .cluster = g->v->cluster,
        .line = g->v->line,
        .owner = g->object,
        .scheduled = conditions_old(&g->conditions, SCHEDULED),
        .resumes = g->pods->existing,
        .now_ms = g->v->now_ms,
    };
}

// Returns why no nodes that exist could ever take the present spec. NULL: they could, or it is not known yet. A gang in
// the line is asked again when nodes change.
static const char *hopeless(struct gang_decision *g)
{
    struct gang gang;
    struct placement placed;
    if (!passed(g, 0) || !gang_of(g, false, &gang))
        return NULL;
    planner_place(g->v->cluster, &gang, g->a, &placed);
    if (placed.verdict != VERDICT_INFEASIBLE)
        return NULL;
    struct gang_place_request request = request_of(g);
    gang_place(&request, &gang, g->a, g->plan, &placed);
    g->plan->waits_for_room = true;
    return gang_place_message(&request, &gang, &placed, g->a);
}

enum gang_verdict gang_judge_change(struct gang_decision *g, bool runs)
{
    enum gang_verdict verdict = gang_judge(g);
    const char *why = verdict == GANG_OK && runs ? hopeless(g) : NULL;
    if (!why)
        return verdict;
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, REASON_INFEASIBLE, why);
    return GANG_REFUSED;
}

static void create(struct gang_decision *g, const struct placement *placed)
{
    size_t n = 0;
    add_service(g, g->service_first ? STAGE_FIRST : STAGE_SECOND);
    if (!g->owner->create(g, placed, &n)) {
        plan_init(g->plan, g->a); // all or none
        give_back_refused(g);
        return;
    }
    plan_requeue(g->plan, 0); // a refusal changes no object that would wake us
    gang_wait(
        g, REASON_CREATING,
        arena_printf(g->a, "%zu pod%s being created%s", n, n == 1 ? " is" : "s are", gang_place_victims(placed, g->a)));
}

static void place(struct gang_decision *g)
{
    struct gang gang;
    struct placement placed;
    struct gang_place_request request = request_of(g);
    if (!gang_of(g, true, &gang)) {
        give_back_refused(g);
        return;
    }
    gang_place(&request, &gang, g->a, g->plan, &placed);
    if (placed.verdict == VERDICT_PLACED) {
        create(g, &placed);
        return;
    }
    // The pods that exist were created before a crash. Next to them, the others have no room.
    bool all_go = g->pods->existing && !g->pods->older;
    const char *reason = placed.verdict == VERDICT_INFEASIBLE && !all_go ? REASON_INFEASIBLE : REASON_INSUFFICIENT;
    g->owner->give_back(g, reason, gang_place_message(&request, &gang, &placed, g->a));
    g->plan->waits_for_room = !g->plan->rolls_back;
}

static void wait_for_verdict(struct gang_decision *g)
{
    const struct condition *c = &g->conditions.now[ACCEPTED];
    add_service(g, STAGE_FIRST);
    if (g->needs_setup && !g->v->setup)
        conditions_wait(&g->conditions, REASON_PENDING,
                        "waits for the operator's keys, which the agents of its pods need");
    else if (c->status == CONDITION_UNKNOWN && !g->pods->existing)
        conditions_wait(&g->conditions, c->reason, c->message);
    gang_settle(g);
}

// The API server refused a pod, so all pods that were created with it are given back.
static bool refusal_costs_the_gang(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (!g->refused)
        return false;
    if (str_eq(m->refusal_reason, REASON_NAME_CONFLICT))
        conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, m->refusal_reason, m->refusal_message);
    else if (forbidden(g))
        judge_forbidden(g);
    else
        conditions_accept(&g->conditions);
    g->owner->give_back(g, m->refusal_reason, m->refusal_message);
    return true;
}

void gang_create(struct gang_decision *g)
{
    if (refusal_costs_the_gang(g) || old_pods_go(g))
        return;
    if (service_is_taken(g)) {
        give_back_refused(g);
        return;
    }
    if (backing_off(g))
        return;
    switch (gang_judge(g)) {
    case GANG_OK:
        place(g);
        break;
    case GANG_REFUSED:
        give_back_refused(g);
        break;
    case GANG_UNKNOWN:
        wait_for_verdict(g);
        break;
    }
}

// kube-scheduler would wait for this node for ever.
static const struct pod *pinned_astray(const struct gang_decision *g)
{
    for (size_t i = 0; i < g->pods->n_live; i++)
        if (g->pods->live[i] && pod_pinned_astray(g->v->cluster, g->pods->live[i]))
            return g->pods->live[i];
    return NULL;
}

static void not_bound_in_time(struct gang_decision *g, const char *given_back, const char *why)
{
    const struct gang_pods *pods = g->pods;
    for (size_t i = 0; i < pods->n_live; i++)
        if (pods->live[i] && !pods->live[i]->node && pods->live[i]->pin)
            plan_avoid(g->plan, pods->live[i]->pin);
    g->owner->give_back(g, REASON_BIND_TIMEOUT,
                        arena_printf(g->a, "%d of %zu pods were bound within %d s: %s deleted and planned again%s",
                                     pods->bound, pods->n_live, g->timeout_s, given_back, why));
}

static void wait_until_bound(struct gang_decision *g)
{
    const struct gang_pods *pods = g->pods;
    const struct pod *p = pods->unschedulable, *astray = pinned_astray(g);
    const char *given_back = pods->older ? "the new ones are" : "all are";
    int64_t left = patience_left(g->v->memory, g->plan, PATIENCE_BIND, 1, pods->newest_ms, (int64_t)g->timeout_s * 1000,
                                 g->v->now_ms);
    const char *why =
        p && p->unschedulable_message ? arena_printf(g->a, "; %s: %s", p->obj.meta.name, p->unschedulable_message) : "";
    if (astray) {
        g->owner->give_back(
            g, REASON_BIND_TIMEOUT,
            arena_printf(g->a, "node %s, where pod %s was to go, no longer exists: %s deleted and planned again",
                         astray->pin, astray->obj.meta.name, given_back));
        return;
    }
    if (left <= 0) {
        not_bound_in_time(g, given_back, why);
        return;
    }
    plan_requeue(g->plan, left);
    gang_wait(g, REASON_BINDING, arena_printf(g->a, "%d of %zu pods are bound%s", pods->bound, pods->n_live, why));
}

// A creation that was given up as timed out may still have succeeded, so there can be superfluous pods.
bool gang_whole(struct gang_decision *g)
{
    gang_delete_gone(g, STAGE_SECOND);
    conditions_accept(&g->conditions);
    if (!g->borrowed)
        keep_service(g);
    if ((size_t)g->pods->bound == g->pods->n_live)
        return true;
    wait_until_bound(g);
    return false;
}

// If an image cannot be pulled, the reason alternates between the error and the wait for the next try. The error says
// more.
static const char *stuck_text(struct gang_decision *g)
{
    const struct container_status *s = g->pods->stuck_container;
    const struct condition *old = conditions_old(&g->conditions, READY);
    if (str_eq(s->reason, "ImagePullBackOff") && old && str_eq(old->reason, REASON_IMAGE))
        return old->message;
    return arena_printf(g->a, "pod %s, container %s: %s: %s", g->pods->stuck->obj.meta.name, s->name, s->reason,
                        s->message ? s->message : "see kubectl describe pod");
}

bool gang_show_stuck(struct gang_decision *g)
{
    if (g->pods->stuck)
        conditions_set(&g->conditions, READY, CONDITION_FALSE, g->pods->stuck_reason, stuck_text(g));
    return g->pods->stuck;
}
