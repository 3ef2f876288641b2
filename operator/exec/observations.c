// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/observations.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod_constraints.h"
#include "operator/reconcile/wait.h"

#include <stdlib.h>
#include <string.h>

enum { HEALTHY_MS = 10 * WAIT_RETRY_MAX_MS };

void observations_init(struct observations *n, uint64_t seed)
{
    *n = (struct observations){.seed = seed};
}

void observations_done(struct observations *n)
{
    arena_done(&n->needs);
    arena_done(&n->refusal);
    arena_done(&n->contended);
    free(TAKE_PTR(n->master));
    n->memory = (struct gang_memory){0};
}

static void move(int64_t *time_ms, int64_t by_ms)
{
    *time_ms += *time_ms ? by_ms : 0;
}

void observations_time(struct observations *n, int64_t wall_ms, int64_t mono_ms)
{
    struct gang_memory *m = &n->memory;
    m->looked_ms = n->seen_ms;
    int64_t jump = clock_watch_jump(&n->watch, wall_ms, mono_ms);
    move(&m->looked_ms, jump);
    move(&m->retry_at_ms, jump);
    move(&m->status_wanted_ms, jump);
    for (int i = 0; i < WAIT_KINDS; i++)
        move(&m->waits[i].since_ms, jump);
    // The time may have been noted while the clock was being set.
    m->retry_at_ms = MIN(m->retry_at_ms, wall_ms + WAIT_RETRY_MAX_MS + WAIT_RETRY_MAX_MS / 10);
    n->seen_ms = wall_ms;
}

static void set_master(struct observations *n, const char *master)
{
    if (str_eq(n->master, master))
        return;
    free(n->master);
    n->memory.master = n->master = master ? xstrdup(master) : NULL;
}

static void forget_dry_run(struct observations *n, uint64_t hash)
{
    arena_done(&n->needs);
    n->memory.dry_run = DRY_RUN_NONE;
    n->memory.dry_run_hash = hash;
    n->memory.needs = NULL;
    n->memory.dry_run_pod = NULL;
    n->memory.dry_run_message = NULL;
}

static int note_constraints(struct observations *n, uint64_t hash, const char *pod_json, size_t len, struct err *err)
{
    forget_dry_run(n, hash);
    struct pod_constraints *needs = arena_new(&n->needs, struct pod_constraints);
    int r = pod_constraints_decode(pod_json, len, &n->needs, needs, err);
    if (r < 0)
        return r;
    n->memory.needs = needs;
    if (n->keeps_pod)
        n->memory.dry_run_pod = arena_strndup(&n->needs, pod_json, len);
    n->memory.dry_run = DRY_RUN_OK;
    return 0;
}

static void pass_further(struct gang_memory *m, uint64_t hash)
{
    memmove(m->further, m->further + 1, (DRY_RUNS_FURTHER - 1) * sizeof *m->further);
    m->further[DRY_RUNS_FURTHER - 1] = hash;
}

int observations_dry_run_passed(struct observations *n, const struct action *a, const char *pod_json, size_t len,
                                struct err *err)
{
    if (!a->further)
        return note_constraints(n, a->hash, pod_json, len, err);
    pass_further(&n->memory, a->hash);
    return 0;
}

void observations_dry_run_refused(struct observations *n, uint64_t hash, const char *message)
{
    forget_dry_run(n, hash);
    n->memory.dry_run = DRY_RUN_REFUSED;
    n->memory.dry_run_message = arena_strdup(&n->needs, message);
}

void observations_dry_run_forbidden(struct observations *n, uint64_t hash, int32_t incarnation, const char *reason,
                                    const char *message, int64_t now_ms)
{
    forget_dry_run(n, hash);
    observations_refused(n, incarnation, reason, message, now_ms);
}

static int64_t later(struct observations *n, int64_t now_ms)
{
    n->memory.given_back++;
    return now_ms + wait_backoff_ms(WAIT_RETRY_FIRST_MS, WAIT_RETRY_MAX_MS, n->memory.given_back, n->seed);
}

void observations_refused(struct observations *n, int32_t incarnation, const char *reason, const char *message,
                          int64_t now_ms)
{
    struct gang_memory *m = &n->memory;
    if (m->refusal_reason && m->refusal_incarnation == incarnation && m->retry_at_ms > now_ms)
        return; // the first refusal of a gang says everything
    arena_done(&n->refusal);
    m->refusal_reason = reason;
    m->refusal_message = arena_strdup(&n->refusal, message);
    m->refusal_incarnation = incarnation;
    m->retry_at_ms = later(n, now_ms);
}

static void avoid(struct observations *n, const struct plan *p)
{
    struct gang_memory *m = &n->memory;
    arena_done(&n->contended);
    const char **copy = arena_array(&n->contended, p->n_contended, sizeof *copy);
    for (size_t i = 0; i < p->n_contended; i++)
        copy[i] = arena_strdup(&n->contended, p->contended[i]);
    m->contended = copy;
    m->n_contended = p->n_contended;
}

void observations_planned(struct observations *n, const struct plan *p, int64_t now_ms)
{
    struct gang_memory *m = &n->memory;
    memcpy(m->waits, p->waits, sizeof m->waits);
    set_master(n, p->master);
    if (p->gives_back && m->retry_at_ms <= now_ms)
        m->retry_at_ms = later(n, now_ms);
    if (p->gives_back || p->n_contended)
        avoid(n, p);
}

static bool creates(const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->actions[i].kind == ACTION_CREATE_SERVICE || p->actions[i].kind == ACTION_CREATE_POD)
            return true;
    return false;
}

bool observations_calm(const struct observations *n, const struct plan *p, int64_t now_ms)
{
    const struct gang_memory *m = &n->memory;
    bool trouble = m->given_back || m->n_contended;
    return trouble && m->retry_at_ms <= now_ms && !p->gives_back && !p->n_contended && !creates(p);
}

void observations_bound(struct observations *n)
{
    struct gang_memory *m = &n->memory;
    if (m->refusal_reason && m->dry_run == DRY_RUN_NONE)
        return; // a new spec is being tried while the old one runs: the waits continue to grow
    arena_done(&n->refusal);
    arena_done(&n->contended);
    m->refusal_reason = m->refusal_message = NULL;
    m->given_back = 0;
    m->retry_at_ms = 0;
    m->contended = NULL;
    m->n_contended = 0;
}

void observations_ready(struct observations *n, int64_t since_ms, int64_t now_ms)
{
    int32_t given_back = now_ms - since_ms < HEALTHY_MS ? n->memory.given_back : 0;
    observations_bound(n);
    if (!n->memory.given_back)
        n->memory.given_back = given_back;
}
