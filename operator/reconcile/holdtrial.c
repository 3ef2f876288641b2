// SPDX-License-Identifier: Apache-2.0
// What the API server would make of the pods of a PlacementGroup. It is asked by dry runs of a pod with one bundle, one
// for each shape: what is allowed for the one (a LimitRange, a policy) may be refused for the other.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/hold.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>
#include <string.h>

enum { SETUP_RETRY_MS = 1000 };

static int32_t first_of(const struct bundles *b, size_t shape)
{
    int32_t i = 0;
    while (b->shape[i] != shape)
        i++;
    return i;
}

// Of more shapes than can be remembered the creation tells.
void hold_plan_trials(struct hold *h)
{
    const struct bundles *b = &h->bundles;
    h->n_trials = MIN(b->n_shapes, (size_t)DRY_RUNS_FURTHER + 1);
    h->trials = arena_array(h->a, h->n_trials, sizeof *h->trials);
    for (size_t i = 0; i < h->n_trials; i++) {
        const char *text = arena_printf(h->a, "%016" PRIx64 " %016" PRIx64, h->template_hash, b->shapes[i].hash);
        h->trials[i] = (struct hold_trial){str_hash(text, strlen(text)), first_of(b, i)};
    }
}

bool hold_tried(const struct hold *h)
{
    const struct group_memory *m = h->v->memory;
    return m->dry_run == DRY_RUN_OK && h->n_trials && m->dry_run_hash == h->trials[0].hash;
}

// The trial that was made last, NULL = it was of another spec.
static const struct hold_trial *last_trial(const struct hold *h)
{
    for (size_t i = 0; i < h->n_trials; i++)
        if (h->trials[i].hash == h->v->memory->dry_run_hash)
            return &h->trials[i];
    return NULL;
}

bool hold_forbids_this(const struct hold *h)
{
    return h->v->memory->dry_run == DRY_RUN_NONE && last_trial(h);
}

// But for the dry run of another spec, which somebody has taken back.
bool hold_refused_lately(const struct hold *h)
{
    const struct group_memory *m = h->v->memory;
    bool of_another = m->dry_run == DRY_RUN_NONE && m->dry_run_hash && !last_trial(h);
    return m->refusal_reason && m->retry_at_ms > h->v->now_ms && !of_another;
}

bool hold_render(struct hold *h, struct bundlepod *p, const char **ret_json)
{
    struct err err = ERR_INIT;
    p->incarnation = h->incarnation;
    p->template_hash = h->template_hash;
    p->setup = h->v->setup;
    if (bundlepod_render(h->plg, &h->bundles, p, h->a, ret_json, &err) == 0)
        return true;
    hold_set(h, HOLD_ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE, arena_strdup(h->a, err.msg));
    return false;
}

static bool passed(const struct hold *h, size_t i)
{
    const struct group_memory *m = h->v->memory;
    if (i == 0)
        return hold_tried(h);
    for (size_t k = 0; k < DRY_RUNS_FURTHER; k++)
        if (m->further[k] == h->trials[i].hash)
            return true;
    return false;
}

static bool add_trial(struct hold *h, size_t i)
{
    const struct hold_trial *t = &h->trials[i];
    const char *gang = bundlepod_gang(h->plg, h->a), *body;
    struct bundlepod pod = {// no pod of the namespace may have the name
                            .name = arena_printf(h->a, "%s-dry-run-%016" PRIx64, gang, t->hash),
                            .items = &t->bundle,
                            .n = 1};
    if (!hold_render(h, &pod, &body))
        return false;
    struct action *x = plan_add(h->plan, ACTION_DRY_RUN, STAGE_FIRST);
    x->body = body;
    x->hash = t->hash;
    x->further = i > 0;
    x->name = arena_printf(h->a, "with bundle %" PRId32, t->bundle);
    return true;
}

// All that are not known yet, at once.
static enum hold_verdict ask(struct hold *h)
{
    for (size_t i = 0; i < h->n_trials; i++)
        if (!passed(h, i) && !add_trial(h, i)) {
            plan_init(h->plan, h->a);
            return HOLD_REFUSED;
        }
    plan_requeue(h->plan, 0); // the answer changes no object that would wake us
    const struct condition *old = hold_old(h, HOLD_ACCEPTED);
    if (!old || old->status == CONDITION_UNKNOWN || old->observed_generation != h->plg->obj.meta.generation)
        hold_set(h, HOLD_ACCEPTED, CONDITION_UNKNOWN, REASON_CHECKING, "the API server checks the template");
    return HOLD_UNKNOWN;
}

static enum hold_verdict refused(struct hold *h, const char *message)
{
    const struct hold_trial *t = last_trial(h);
    const char *what =
        t && h->n_trials > 1 ? arena_printf(h->a, "a pod with bundle %" PRId32, t->bundle) : "the template";
    hold_set(h, HOLD_ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE,
             arena_printf(h->a, "the API server refuses %s: %s", what, message));
    return HOLD_REFUSED;
}

// The quota is looked at last, when the template has passed; and it may be the pods before that fill it.
enum hold_verdict hold_forbidden(struct hold *h)
{
    const struct group_memory *m = h->v->memory;
    if (!str_eq(m->refusal_reason, REASON_QUOTA_EXCEEDED)) {
        plan_requeue(h->plan, m->retry_at_ms - h->v->now_ms);
        return refused(h, m->refusal_message);
    }
    hold_set(h, HOLD_ACCEPTED, CONDITION_TRUE, REASON_VALID, "");
    return HOLD_OK;
}

// The verdict comes with the API server's defaults, limit ranges and injected containers.
enum hold_verdict hold_judge(struct hold *h)
{
    const struct group_memory *m = h->v->memory;
    size_t n = 0;
    if (!h->v->setup) {
        plan_requeue(h->plan, SETUP_RETRY_MS);
        return HOLD_UNKNOWN;
    }
    if (m->dry_run == DRY_RUN_REFUSED && last_trial(h))
        return refused(h, m->dry_run_message);
    if (hold_forbids_this(h) && hold_refused_lately(h))
        return hold_forbidden(h);
    while (n < h->n_trials && passed(h, n))
        n++;
    if (n < h->n_trials)
        return ask(h);
    hold_set(h, HOLD_ACCEPTED, CONDITION_TRUE, REASON_VALID, "");
    return HOLD_OK;
}
