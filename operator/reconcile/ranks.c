// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/ranks.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/reason.h"

#include <string.h>

bool ranks_started(const struct workergroup *wg, int32_t attempt, const struct agent_facts *f)
{
    if (!f || f->state != AGENT_RUNNING || f->attempt < 1)
        return false;
    // If ranks restart one by one, the other ranks keep the attempt that they were started for, as long as that attempt
    // was made from the present worker.
    bool one_by_one = wg->spec.restart_policy == RESTART_WORKER;
    return f->attempt == attempt || (one_by_one && f->attempt < attempt && f->attempt >= wg->status.revision.attempt);
}

static const struct agent_process *process_of(const struct agent_facts *f, int32_t rank)
{
    for (size_t i = 0; i < f->n_processes; i++)
        if (f->processes[i].rank == rank)
            return &f->processes[i];
    return NULL;
}

// While the group is restarting, the failure of a process of an older attempt is not new: it was counted when the
// restart began, or has the same cause.
static bool was_counted(const struct workergroup *wg, int32_t attempt, const struct agent_process *p)
{
    static const char *const up[] = {REASON_RUNNING, REASON_STARTING, REASON_SILENT, REASON_KEYS_CHANGED,
                                     REASON_COMPLETING};
    const struct condition *ready = condition_find(wg->status.conditions, wg->status.n_conditions, COND_READY);
    for (size_t i = 0; i < ARRAY_LEN(up); i++)
        if (ready && str_eq(ready->reason, up[i]))
            return false;
    return p->attempt < attempt;
}

static bool takes_calls(const struct group_view *v, const struct agent_facts *f, const struct agent_process *p,
                        int32_t rank)
{
    int32_t member = v->members ? v->members[rank] : 0;
    if (p)
        return member == p->attempt;
    return member > 0 && (member == f->attempt || v->wg->spec.restart_policy == RESTART_WORKER);
}

enum rank_state ranks_state(const struct group_view *v, int32_t attempt, const struct agent_facts *f, int32_t rank)
{
    const struct worker_spec *s = &v->wg->spec.worker;
    if (!ranks_started(v->wg, attempt, f))
        return RANK_WAITING;
    const struct agent_process *p =
        process_of(f, rank); // if there is no process, it was started and has not reported its end
    if (p && p->state == AGENT_PROCESS_EXITED) {
        if (p->exit_code == 0)
            return RANK_EXITED;
        if (f->ending_ms && p->ended_ms >= f->ending_ms)
            return RANK_WAITING; // until its pod says why it ends
        return was_counted(v->wg, attempt, p) ? RANK_TO_RESTART : RANK_FAILED;
    }
    bool ready = s->module || s->python ? takes_calls(v, f, p, rank)
                                        : ranks_agent_there(f) && (!p || p->state == AGENT_PROCESS_RUNNING);
    return ready ? RANK_READY : RANK_WAITING;
}

static void note_culprit(struct ranks *c, const struct agent_facts *f, int32_t index, int32_t rank)
{
    const struct agent_process *p = process_of(f, rank);
    if (c->culprit && c->culprit->ended_ms <= p->ended_ms)
        return;
    c->culprit = p;
    c->culprit_index = index;
}

static void take_replica(const struct group_view *v, int32_t attempt, int32_t index, struct ranks *c)
{
    const struct agent_facts *f = c->facts[index];
    int32_t each = v->wg->spec.workers_per_replica, ready = 0;
    c->connected += f->connected;
    c->started += ranks_started(v->wg, attempt, f);
    c->told += f->attempt == attempt;
    if (f->ending_ms && (!c->ending_ms || f->ending_ms < c->ending_ms))
        c->ending_ms = f->ending_ms;
    if (!f->connected)
        c->away_ms = MAX(c->away_ms, f->changed_ms);
    for (int32_t rank = index * each; rank < (index + 1) * each; rank++) {
        enum rank_state state = ranks_state(v, attempt, f, rank);
        ready += state == RANK_READY;
        c->exited += state == RANK_EXITED;
        c->rank_zero_exited = c->rank_zero_exited || (rank == 0 && state == RANK_EXITED);
        c->to_restart += state == RANK_TO_RESTART;
        if (state == RANK_FAILED)
            note_culprit(c, f, index, rank);
    }
    c->ready_workers += ready;
    c->ready_replicas += ready == each;
}

void ranks_take(const struct group_view *v, int32_t attempt, const struct agent_facts **facts, struct ranks *ret)
{
    *ret = (struct ranks){.facts = facts};
    for (int32_t i = 0; i < v->wg->spec.replicas; i++)
        if (facts[i])
            take_replica(v, attempt, i, ret);
}

static const char *join(const char *a, const char *b, struct arena *arena)
{
    if (str_empty(a) || str_empty(b))
        return str_empty(a) ? b : a;
    return arena_printf(arena, "%s\n%s", a, b);
}

// The C library that a wheel is built for may be too old to have names for signals.
static const char *reason_of_signal(int signal, struct arena *a)
{
    const char *name = NULL;
#if __GLIBC_PREREQ(2, 32)
    name = sigabbrev_np(signal);
#endif
    return name ? arena_printf(a, "SIG%s", name) : arena_printf(a, "signal %d", signal);
}

struct group_failure ranks_failure(const struct group_view *v, const struct agent_process *p, struct arena *a)
{
    return (struct group_failure){
        .rank = p->rank,
        .exit_code = p->exit_code,
        .reason = p->oom      ? FAILURE_OOM_KILLED
                  : p->signal ? reason_of_signal(p->signal, a)
                              : FAILURE_ERROR,
        .message = join(p->message, p->last_lines, a),
        .time_ms = MIN(p->ended_ms, v->gang.now_ms),
    };
}
