// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/commands.h"

#include "common/base/mem.h"
#include "common/wire/record.h"
#include "operator/reconcile/command_text.h"
#include "operator/reconcile/gang_manifest.h"

enum { RETRY_MS = 2000 }; // after an agent has refused a command, or could not carry it out

static bool may_tell(struct group_decision *d, const struct agent_facts *f, uint8_t type, int32_t attempt)
{
    int64_t left = f->error ? MIN(f->error_ms + RETRY_MS - d->v->gang.now_ms, RETRY_MS) : 0;
    if (!f->connected || (f->sent == type && f->sent_attempt == attempt))
        return false;
    if (left > 0)
        plan_requeue(d->plan, left);
    return left <= 0;
}

bool commands_may_tell(struct group_decision *d, int32_t index, uint8_t type, int32_t attempt)
{
    return may_tell(d, d->pods.ranks.facts[index], type, attempt);
}

static void tell_pod(struct group_decision *d, const struct pod *p, uint8_t type, int32_t attempt, const char *body,
                     int stage)
{
    struct action *x = plan_add(d->plan, ACTION_COMMAND, stage);
    x->name = arena_strdup(d->a, p->obj.meta.name);
    x->uid = arena_strdup(d->a, p->obj.meta.uid);
    x->command = type;
    x->attempt = attempt;
    x->body = body;
}

void commands_tell(struct group_decision *d, int32_t index, uint8_t type, int32_t attempt, const char *body, int stage)
{
    tell_pod(d, d->pods.current[index], type, attempt, body, stage);
}

static bool runs(const struct agent_facts *f)
{
    return f->state == AGENT_RUNNING || f->state == AGENT_PREPARED || f->state == AGENT_PREPARING;
}

static void stop_in_pod(struct group_decision *d, size_t at, int stage)
{
    const struct agent_facts *f = &d->v->agents[at];
    if (runs(f) && may_tell(d, f, RECORD_STOP, f->attempt))
        tell_pod(d, d->v->gang.pods[at], RECORD_STOP, f->attempt, command_text_stop(d, f->attempt, false), stage);
}

void commands_stop_all(struct group_decision *d)
{
    for (size_t i = 0; d->v->agents && i < d->v->gang.n_pods; i++)
        stop_in_pod(d, i, STAGE_SECOND);
}

static bool is_stale(const struct group_bundles *p, const struct pod *pod)
{
    for (size_t i = 0; i < p->n_stale; i++)
        if (p->stale[i] == pod)
            return true;
    return false;
}

// While a group on bundles waits, the indexes of its pods are not known.
static void hold_bundles(struct group_decision *d, int stage)
{
    for (size_t i = 0; d->v->agents && i < d->v->gang.n_pods; i++) {
        const struct agent_facts *f = &d->v->agents[i];
        bool stays = d->wg->spec.restart_policy == RESTART_WORKER && f->attempt >= d->progress.revision.attempt;
        if (is_stale(d->pods.bundles, d->v->gang.pods[i]) || (f->attempt < d->progress.attempt && !stays))
            stop_in_pod(d, i, stage);
    }
}

void commands_stop_older(struct group_decision *d, int stage)
{
    const struct group_pods *c = &d->pods;
    if (c->bundles) {
        hold_bundles(d, stage);
        return;
    }
    for (int32_t i = 0; i < c->replicas; i++) {
        const struct agent_facts *f = c->ranks.facts[i];
        bool old = f && f->attempt > 0 && f->attempt < d->progress.attempt && runs(f);
        bool stays = d->wg->spec.restart_policy == RESTART_WORKER && f && f->attempt >= d->progress.revision.attempt;
        if (old && !stays && commands_may_tell(d, i, RECORD_STOP, f->attempt))
            commands_tell(d, i, RECORD_STOP, f->attempt, command_text_stop(d, f->attempt, false), stage);
    }
}

// Whether the agent was here, and none of its processes ran any more.
static bool has_ended(const struct agent_facts *f)
{
    size_t n = 0;
    while (n < f->n_processes && f->processes[n].state == AGENT_PROCESS_EXITED)
        n++;
    return f->changed_ms && n == f->n_processes && (n || !runs(f));
}

// The time for which the agent of a pod that has to end can still receive the command. If nobody can reach the
// operator, it gets more time, but in the end the group's resources must be given back. If its processes have ended,
// nothing has to be received: the pod is about to be Completed, and its log stays if nobody deletes it before.
static int64_t end_left_ms(const struct group_decision *d, const struct agent_facts *f)
{
    const struct group_view *v = d->v;
    int64_t since = MAX(f->changed_ms, MAX(v->leading_ms, v->reach.listening_ms));
    int64_t longest = (int64_t)d->wg->spec.gang.node_lost_s * 1000,
            rest = MIN(since + longest - v->gang.now_ms, longest), left;
    if (ranks_agent_there(f) || has_ended(f))
        return rest;
    return group_pods_silence(v, f->changed_ms, DIAL_IN_MIN_MS, &left) == REACH_COUNTS ? 0 : MIN(left, rest);
}

void commands_end(struct group_decision *d)
{
    const struct group_view *v = d->v;
    int32_t attempt = d->progress.attempt;
    if (d->pods.bundles) {
        commands_stop_all(d);
        return;
    }
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const struct pod *p = v->gang.pods[i];
        int32_t index = pod_label_number(p, LABEL_INDEX);
        bool current = index >= 0 && index < d->pods.replicas && d->pods.current[index] == p;
        const struct agent_facts *f = current ? d->pods.ranks.facts[index] : NULL;
        int64_t left = f ? end_left_ms(d, f) : 0;
        if (pod_terminal(p) && !p->obj.meta.deleted_ms)
            continue;
        if (f && f->connected && !p->obj.meta.deleted_ms) {
            if (commands_may_tell(d, index, RECORD_STOP, attempt))
                commands_tell(d, index, RECORD_STOP, attempt, command_text_stop(d, attempt, true), STAGE_SECOND);
        } else if (left > 0 && !p->obj.meta.deleted_ms) {
            plan_requeue(d->plan, left); // the pod may be about to end, or the agent to come back
        } else {
            gang_delete_pod(&d->gang, p, STAGE_SECOND);
        }
    }
}
