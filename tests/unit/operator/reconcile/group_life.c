// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/group_life.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

uint64_t life_seed;
bool life_loud;

const struct workergroup *life_group(const struct life *l)
{
    return workergroup_of(l->w.gang);
}

const struct condition *life_condition(const struct life *l, const char *type)
{
    const struct workergroup_status *s = &life_group(l)->status;
    return condition_find(s->conditions, s->n_conditions, type);
}

bool life_is(const struct life *l, const char *type)
{
    const struct condition *c = life_condition(l, type);
    return c && c->status == CONDITION_TRUE;
}

const char *life_reason(const struct life *l, const char *type)
{
    const struct condition *c = life_condition(l, type);
    return c ? c->reason : "(none)";
}

void life_tell(const struct life *l, const char *what)
{
    if (!life_loud)
        return;
    fprintf(stderr, "%" PRId64 " %s", l->w.now_ms, what);
    fprintf(stderr, "%s", what[0] && what[strlen(what) - 1] == '\n' ? "" : "\n");
}

// What must hold whatever happens.

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
             "%s speaks of a generation that nobody has seen, or has no reason", s->conditions[i].type);
}

int32_t life_pods(const struct life *l)
{
    int32_t n = 0;
    for (int i = 0; i < SIM_PODS; i++)
        n += sim_live(&l->w.pods[i]);
    return n;
}

void life_turn(struct life *l)
{
    sim_operator_watch(&l->o);
    for (int i = 0; i < 8 && sim_operator_awake(&l->o); i++) {
        sim_operator_turn(&l->o);
        if (life_loud && *l->o.last_plan)
            life_tell(l, l->o.last_plan);
        check_status(l);
        check_pods(l);
        sim_operator_watch(&l->o);
    }
}

// A life of a group of 8 in which nothing goes wrong by itself.
struct life *life_calm(const struct sim_spec *spec)
{
    struct life *l = xcalloc(1, sizeof *l);
    life_seed = 1;
    sim_init(&l->w, life_seed);
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

void life_end(struct life *l)
{
    sim_operator_done(&l->o);
    sim_done(&l->w);
    free(l);
}

void life_pass(struct life *l, int64_t ms)
{
    for (int64_t end = l->w.now_ms + ms; l->w.now_ms < end; sim_pass(&l->w, 10))
        life_turn(l);
}
