// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/processes.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/command_text.h"
#include "operator/reconcile/commands.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

enum {
    HEARTBEATS_MISSED = 3,
    RANKS_NAMED = 8,
};

static bool is_prepared(const struct group_decision *d, int32_t index)
{
    const struct agent_facts *f = d->pods.ranks.facts[index];
    return f->state == AGENT_PREPARED && f->attempt == d->progress.attempt;
}

bool processes_mixed(const struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    bool others = false;
    for (int32_t i = 0; i < c->replicas; i++) {
        const struct agent_facts *f = c->ranks.facts[i];
        others = others || (f->connected && !ranks_started(d->wg, d->progress.attempt, f) && !is_prepared(d, i));
    }
    return others && c->ranks.started && d->wg->spec.restart_policy != RESTART_WORKER;
}

static void starting(struct group_decision *d, const char *message)
{
    conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_STARTING, message);
}

// "ranks 0-1, 4": the ranks of the listed replicas, cut after the first few.
static const char *ranks_text(struct group_decision *d, const bool *listed)
{
    int32_t each = d->wg->spec.workers_per_replica, n = d->pods.replicas, named = 0;
    const char *text = "";
    bool single = false;
    for (int32_t i = 0; i < n; i++) {
        if (!listed[i])
            continue;
        int32_t last = i;
        while (last + 1 < n && listed[last + 1])
            last++;
        if (named++ == RANKS_NAMED)
            return arena_printf(d->a, "ranks %s, ...", text);
        single = named == 1 && each == 1 && last == i;
        int32_t from = i * each, to = (last + 1) * each - 1;
        const char *comma = *text ? ", " : "";
        text = from == to ? arena_printf(d->a, "%s%s%d", text, comma, from)
                          : arena_printf(d->a, "%s%s%d-%d", text, comma, from, to);
        i = last;
    }
    return arena_printf(d->a, "%s %s", single ? "rank" : "ranks", text);
}

static bool is_away(const struct group_decision *d, int32_t index)
{
    return !ranks_agent_there(d->pods.ranks.facts[index]);
}

// The agent is connected to another replica of the operator.
static bool is_elsewhere(const struct group_decision *d, int32_t index)
{
    const struct agent_facts *f = d->pods.ranks.facts[index];
    return !f->connected && f->seen_by;
}

static const char *first_elsewhere(const struct group_decision *d)
{
    int32_t i = 0;
    while (!is_elsewhere(d, i))
        i++;
    return d->pods.ranks.facts[i]->seen_by;
}

static bool trusts_others(const struct group_decision *d, int32_t index)
{
    return is_away(d, index) && d->v->gang.setup &&
           pod_trusts_others(d->pods.current[index], d->v->gang.setup->keys_id);
}

static bool containers_run(const struct pod *p)
{
    for (size_t i = 0; i < p->n_containers; i++)
        if (p->containers[i].waiting && !p->containers[i].init)
            return false;
    return p->phase == POD_RUNNING && p->ip;
}

static bool is_missing(const struct group_decision *d, int32_t index)
{
    return is_away(d, index) || !containers_run(d->pods.current[index]);
}

// The agent should be connected, but is not. The agent of a pod that does not run yet is not missed.
static bool is_silent(const struct group_decision *d, int32_t index)
{
    return is_away(d, index) && containers_run(d->pods.current[index]);
}

static bool is_unready(const struct group_decision *d, int32_t index)
{
    int32_t each = d->wg->spec.workers_per_replica;
    for (int32_t rank = index * each; rank < (index + 1) * each; rank++)
        if (ranks_state(d->v, d->progress.attempt, d->pods.ranks.facts[index], rank) != RANK_READY)
            return true;
    return false;
}

// The number of replicas for which `is` is true, and their ranks in words.
static int32_t list(struct group_decision *d, bool (*is)(const struct group_decision *d, int32_t index),
                    const char **ret_text)
{
    bool *listed = arena_array(d->a, (size_t)d->pods.replicas, sizeof *listed);
    int32_t n = 0;
    for (int32_t i = 0; i < d->pods.replicas; i++)
        n += listed[i] = is(d, i);
    *ret_text = n ? ranks_text(d, listed) : "";
    return n;
}

// The processes ran when the status was written.
static bool ran(const struct group_decision *d)
{
    const struct condition *old = conditions_old(&d->gang.conditions, READY);
    return old && (old->status == CONDITION_TRUE || str_eq(old->reason, REASON_SILENT) ||
                   str_eq(old->reason, REASON_KEYS_CHANGED));
}

// Another replica sees the agent and everything in the pod that takes calls. This one may never have heard about its
// processes.
static bool runs_elsewhere(const struct group_decision *d, int32_t index)
{
    const struct worker_spec *s = &d->wg->spec.worker;
    int32_t each = d->wg->spec.workers_per_replica;
    if (!is_elsewhere(d, index))
        return false;
    for (int32_t rank = index * each; rank < (index + 1) * each && (s->module || s->python); rank++)
        if (!d->v->members || !d->v->members[rank])
            return false;
    return true;
}

static bool all_run_somewhere(const struct group_decision *d)
{
    for (int32_t i = 0; i < d->pods.replicas; i++)
        if (is_unready(d, i) && !runs_elsewhere(d, i))
            return false;
    return true;
}

static void ready(struct group_decision *d)
{
    const char *message = arena_printf(d->a, "all %d workers are ready", group_world_size(d->wg)), *ranks;
    if (list(d, is_away, &ranks))
        message = arena_printf(d->a, "%s; the agent of %s is not connected at present", message, ranks);
    if (list(d, is_elsewhere, &ranks))
        message = arena_printf(d->a,
                               "%s; connected to another replica of the operator than the one that leads (%s): "
                               "the agent of %s",
                               message, first_elsewhere(d), ranks);
    conditions_set(&d->gang.conditions, READY, CONDITION_TRUE, REASON_RUNNING, message);
    if (conditions_was(&d->gang.conditions, GPU_LOST) && !d->pods.gpu_lost)
        conditions_set(&d->gang.conditions, GPU_LOST, CONDITION_FALSE, REASON_GPUS_PRESENT,
                       "all ranks run again, on nodes whose GPUs are present");
}

// Agents and workers connect again after their operator, or the connection to it, went away. Until they had the time to
// do so, the group keeps its Ready. The same is true while another replica sees agents that this one does not see.
static bool keeps_ready(struct group_decision *d)
{
    struct group_pods *c = &d->pods;
    int64_t beats = (int64_t)d->wg->spec.heartbeat_s * HEARTBEATS_MISSED * 1000, first = MAX(beats, DIAL_IN_MIN_MS);
    int64_t dialed_ms = MAX(d->v->leading_ms, d->v->reach.listening_ms);
    int64_t left = MIN(dialed_ms + first - d->v->gang.now_ms, first);
    if (ran(d) && all_run_somewhere(d)) {
        ready(d);
        c->ready = c->replicas;
        c->ready_workers = group_world_size(d->wg);
        return true;
    }
    if (c->ranks.connected < c->replicas)
        left = MAX(left, MIN(c->ranks.away_ms + beats - d->v->gang.now_ms, beats));
    if (!conditions_was(&d->gang.conditions, READY) || left <= 0)
        return false;
    ready(d);
    c->ready = d->wg->status.ready_replicas;
    c->ready_workers = d->wg->status.ready_workers;
    plan_requeue(d->plan, left);
    return true;
}

// Waits if it is too early for the next attempt.
static bool backing_off(struct group_decision *d)
{
    int64_t left = attempt_pause_left_ms(d);
    if (left <= 0)
        return false;
    const struct condition *old = conditions_old(&d->gang.conditions, READY);
    plan_requeue(d->plan, left);
    if (old && str_eq(old->reason, REASON_RESTARTING))
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, old->reason, old->message);
    else
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_BACKOFF, attempt_pause_text(d));
    return true;
}

// The reason that the first agent gave for not carrying out its command.
static const char *first_error(struct group_decision *d)
{
    for (int32_t i = 0; i < d->pods.replicas; i++) {
        const struct agent_facts *f = d->pods.ranks.facts[i];
        if (f->error && !ranks_started(d->wg, d->progress.attempt, f))
            return arena_printf(d->a, "pod %s: %s; the operator tries again", d->pods.current[i]->obj.meta.name,
                                f->error);
    }
    return NULL;
}

// Returns false if `is` is true for no replica. Otherwise says that the agents of these replicas are not connected.
static bool silent(struct group_decision *d, bool (*is)(const struct group_decision *d, int32_t index))
{
    const char *ranks;
    if (!list(d, is, &ranks))
        return false;
    int32_t first = 0;
    while (!is(d, first))
        first++;
    const char *what =
        d->pods.unreachable
            ? "its processes run on, and its pod stays: no other agent has been connected for that long either, so the "
              "operator itself may be unreachable; read its log, and check that pods can reach its Service"
            : arena_printf(d->a, "its pod is replaced after placement.nodeLostSeconds (%d s)",
                           group_bundles_node_lost_s(d->v, d->pods.current[first]));
    conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_SILENT,
                   arena_printf(d->a, "the agent of %s is not connected; %s", ranks, what));
    return true;
}

// The operator cannot see some agents, and never will with its present keys.
static bool keys_changed(struct group_decision *d)
{
    const char *ranks;
    if (!list(d, trusts_others, &ranks))
        return false;
    conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_KEYS_CHANGED,
                   arena_printf(d->a,
                                "the keys of the operator changed after the pods of %s were created: the pods run on, "
                                "but the operator can neither see nor call them; put the earlier keys back into the "
                                "Secret %s, or delete the pods, or suspend and resume the group",
                                ranks, d->v->gang.setup->keys_secret));
    return true;
}

// Once processes run, the loss of all pods must cost the attempt, even if the operator dies with them. Then only the
// status says in which attempt they were started.
static bool may_be_forgotten(const struct group_decision *d)
{
    return !conditions_was(&d->gang.conditions, SCHEDULED) || d->wg->status.attempt < d->progress.attempt;
}

static void begin_all(struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    int32_t prepared = 0, attempt = d->progress.attempt;
    for (int32_t i = 0; i < c->replicas; i++)
        prepared += is_prepared(d, i);
    bool all = prepared + c->ranks.started == c->replicas;
    d->gang.status_first = all && may_be_forgotten(d);
    for (int32_t i = 0; i < c->replicas; i++) {
        if (!group_pods_leads(c, i) || ranks_started(d->wg, attempt, c->ranks.facts[i]))
            continue;
        if (all && commands_may_tell(d, i, RECORD_START, attempt))
            commands_tell(d, i, RECORD_START, attempt, command_text_start(d, i, false),
                          d->gang.status_first ? STAGE_SECOND : STAGE_FIRST);
        else if (!all && !is_prepared(d, i) && commands_may_tell(d, i, RECORD_PREPARE, attempt))
            commands_tell(d, i, RECORD_PREPARE, attempt, command_text_prepare(d, i), STAGE_FIRST);
    }
    const char *error = first_error(d);
    if (error)
        starting(d, error);
    else if (all)
        starting(d, arena_printf(d->a, "the processes of %d replicas are being started", prepared));
    else
        starting(d, arena_printf(d->a, "%d of %d replicas are prepared", prepared + c->ranks.started, c->replicas));
}

// Some processes were not started for the present attempt.
static void begin(struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    const char *missing;
    if (c->ranks.connected < c->replicas && keeps_ready(d))
        return;
    if (backing_off(d)) {
        commands_stop_older(d, STAGE_FIRST);
        return;
    }
    int32_t n = list(d, is_missing, &missing);
    if (n && keys_changed(d)) {
        commands_stop_older(d, STAGE_FIRST);
        return;
    }
    if (n) {
        int32_t each = d->wg->spec.workers_per_replica;
        commands_stop_older(d, STAGE_FIRST);
        if (!(c->ranks.started || ran(d)) || !silent(d, is_silent))
            starting(d, arena_printf(d->a, "%d of %d workers are connected; missing: %s", (c->replicas - n) * each,
                                     c->replicas * each, missing));
        return;
    }
    begin_all(d);
}

static bool any_to_restart(struct group_decision *d, int32_t index)
{
    for (int32_t i = index; i >= 0; i = group_pods_next(&d->pods, i))
        for (int32_t local = 0; local < d->wg->spec.workers_per_replica; local++)
            if (command_text_restarts(d, i, local))
                return true;
    return false;
}

// restartPolicy Worker: single ranks get a new process, and the other ranks run on.
static void restart_some(struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    int32_t attempt = d->progress.attempt;
    if (backing_off(d))
        return;
    for (int32_t i = 0; i < c->replicas; i++)
        if (group_pods_leads(c, i) && any_to_restart(d, i) && commands_may_tell(d, i, RECORD_RESTART, attempt))
            commands_tell(d, i, RECORD_RESTART, attempt, command_text_start(d, i, true), STAGE_FIRST);
    const struct condition *old = conditions_old(&d->gang.conditions, READY);
    conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_RESTARTING,
                   old && str_eq(old->reason, REASON_RESTARTING) ? old->message : "the failed ranks are restarted");
}

// All processes were started.
static void serve(struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    int32_t world = group_world_size(d->wg);
    const char *ranks;
    if (c->ranks.to_restart) {
        restart_some(d);
    } else if (c->ready_workers == world) {
        ready(d);
    } else if (c->ranks.exited) {
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_COMPLETING,
                       arena_printf(d->a, "%d of %d workers have ended with exit code 0", c->ranks.exited, world));
    } else if (!keeps_ready(d) && !keys_changed(d)) {
        if (!silent(d, is_away) && list(d, is_unready, &ranks))
            starting(d, arena_printf(d->a, "%d of %d workers are ready; missing: %s", c->ready_workers, world, ranks));
    }
}

void processes_run(struct group_decision *d)
{
    if (d->pods.ranks.started == d->pods.replicas)
        serve(d);
    else
        begin(d);
}
