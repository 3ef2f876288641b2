// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/group_life.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

const struct workergroup *life_group(const struct life *l)
{
    return workergroup_of(l->w.gang);
}

// Rules that hold whatever happens.

static void check_pods(const struct life *l)
{
    const struct sim_world *w = &l->w;
    for (int i = 0; i < SIM_PODS; i++)
        for (int k = 0; w->pods[i].now && k < i; k++) {
            const struct sim_pod *p = &w->pods[i], *q = &w->pods[k];
            if (!q->now || p->incarnation != q->incarnation)
                continue;
            must(p->index != q->index, "two pods of index %d in one incarnation", p->index);
            must(p->attempt == q->attempt, "attempts %d and %d in one incarnation", p->attempt, q->attempt);
            must(p->world_size == q->world_size, "WORLD_SIZE %d and %d together", p->world_size, q->world_size);
            must(pod_spec_hash(p->now) == pod_spec_hash(q->now), "pods of two specs together");
        }
}

static void check_status(struct life *l)
{
    const struct workergroup_status *s = &life_group(l)->status;
    must(s->attempt >= l->attempt, "attempt went from %d to %d", l->attempt, s->attempt);
    must(s->incarnation >= l->incarnation, "incarnation went from %d to %d", l->incarnation, s->incarnation);
    must(s->restarts_counted <= s->restarts, "%d of %d restarts count", s->restarts_counted, s->restarts);
    must(s->restarts_counted <= l->w.spec.max_restarts, "%d restarts of %d", s->restarts_counted,
         l->w.spec.max_restarts);
    must(s->restarts <= l->restarts || s->attempt > l->attempt, "restart %d in attempt %d", s->restarts, s->attempt);
    l->attempt = s->attempt;
    l->incarnation = s->incarnation;
    l->restarts = s->restarts;
    if (!s->n_conditions)
        return;
    must(s->n_conditions == 6 + (life_condition(l, COND_GPU_LOST) != NULL), "%zu conditions", s->n_conditions);
    must(life_is(l, COND_FAILED) + life_is(l, COND_SUCCEEDED) + life_is(l, COND_SUSPENDED) + life_is(l, COND_READY) <=
             1,
         "Ready, Succeeded, Failed and Suspended exclude each other");
    must(!life_is(l, COND_READY) || life_is(l, COND_SCHEDULED), "Ready, but not Scheduled");
    for (size_t i = 0; i < s->n_conditions; i++)
        must(s->conditions[i].observed_generation <= s->observed_generation && !str_empty(s->conditions[i].reason),
             "%s names a generation that nobody has seen, or has no reason", s->conditions[i].type);
}

static void check(struct life *l)
{
    check_status(l);
    check_pods(l);
}

struct life *life_wild(uint64_t seed)
{
    struct life *l = xcalloc(1, sizeof *l);
    l->check = check;
    sim_init(&l->w, seed);
    sim_operator_init(&l->o, &l->w);
    return l;
}

struct life *life_calm(const struct sim_spec *spec)
{
    struct life *l = xcalloc(1, sizeof *l);
    l->check = check;
    sim_init(&l->w, 1);
    for (int i = 0; i < SIM_NODES; i++) {
        l->w.nodes[i].gpus = 2;
        sim_node_add(&l->w, &l->w.nodes[i]);
    }
    l->w.mode = SIM_RUNS_ON;
    l->w.calm = true;
    sim_edit(&l->w, spec);
    sim_operator_init(&l->o, &l->w);
    return l;
}
