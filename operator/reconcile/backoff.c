// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/backoff.h"

#include "common/base/str.h"
#include "operator/reconcile/patience.h"
#include "operator/reconcile/reason.h"

#include <string.h>

int64_t backoff_all_ms(const struct work *w, uint64_t seed)
{
    const struct workergroup_spec *s = &w->wg->spec;
    return patience_backoff_ms((int64_t)s->backoff_initial_s * 1000, (int64_t)s->backoff_max_s * 1000,
                               w->progress.restarts_in_a_row, seed);
}

static uint64_t jitter_seed(const struct work *w)
{
    const char *uid = w->wg->obj.meta.uid;
    return str_hash(uid, strlen(uid)) + (uint64_t)w->progress.attempt;
}

int64_t backoff_left_ms(struct work *w, int64_t *ret_all)
{
    const struct group_progress *o = &w->progress;
    if (!o->restarts_in_a_row || !o->last_failure.time_ms)
        return 0;
    int64_t all = backoff_all_ms(w, jitter_seed(w));
    if (ret_all)
        *ret_all = all;
    return patience_left(w->v->gang.memory, w->plan, PATIENCE_PAUSE, o->last_failure.time_ms,
                         work_at_latest_ms(o->last_failure.time_ms), all, w->v->gang.now_ms);
}

const char *backoff_text(struct work *w)
{
    const struct group_progress *o = &w->progress;
    const struct group_failure *f = &o->last_failure;
    int64_t all = 0;
    backoff_left_ms(w, &all);
    return arena_printf(w->a, "attempt %d begins after a backoff of %.1f s (restart %d, after %s of rank %d)",
                        o->attempt, (double)all / 1000, o->restarts, f->reason ? f->reason : FAILURE_ERROR, f->rank);
}
