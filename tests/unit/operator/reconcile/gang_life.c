// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/gang_life.h"

#include "common/base/str.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { LOOK_MS = 500 };

char life_name[160];
bool life_loud;

void life_of_seed(uint64_t seed)
{
    snprintf(life_name, sizeof life_name, "seed %" PRIu64 " (run again with SIM_SEED=%" PRIu64 ")", seed, seed);
}

static void one(uint64_t seed, void (*live)(uint64_t seed))
{
    life_of_seed(seed);
    live(seed);
}

void life_each(int64_t n, void (*live)(uint64_t seed))
{
    int64_t seed = 0;
    life_loud = str_to_i64(getenv("SIM_SEED"), &seed);
    str_to_i64(getenv("SIM_SEEDS"), &n);
    for (int64_t i = 1; i <= n && !life_loud; i++)
        one((uint64_t)i, live);
    if (life_loud)
        one((uint64_t)seed, live);
}

void life_end(struct life *l)
{
    sim_operator_done(&l->o);
    sim_done(&l->w);
    free(l);
}

void life_tell(const struct life *l, const char *what)
{
    if (life_loud && *what)
        fprintf(stderr, "%" PRId64 " %s%s", l->w.now_ms, what, what[strlen(what) - 1] == '\n' ? "" : "\n");
}

void life_turn(struct life *l)
{
    sim_operator_watch(&l->o);
    for (int i = 0; i < 8 && sim_operator_awake(&l->o); i++) {
        sim_operator_turn(&l->o);
        life_tell(l, l->o.last_plan ? l->o.last_plan : "");
        l->check(l);
        sim_operator_watch(&l->o);
    }
}

void life_pass(struct life *l, int64_t ms)
{
    for (int64_t end = l->w.now_ms + ms; l->w.now_ms < end; sim_pass(&l->w, 10))
        life_turn(l);
}

void life_wild_steps(struct life *l, int steps, void (*happens)(struct life *l))
{
    for (int i = 0; i < steps; i++) {
        sim_pass(&l->w, rand_range(&l->w.rand, 1, sim_chance(&l->w, 10) ? 30000 : 2000));
        sim_land(&l->w);
        if (sim_chance(&l->w, 50))
            happens(l);
        life_turn(l);
    }
}

static bool at_rest(const struct life *l)
{
    for (int i = 0; i < SIM_PODS; i++)
        if (l->w.pods[i].now && sim_going(&l->w, &l->w.pods[i]))
            return false;
    return !sim_operator_awake(&l->o) && l->o.due_ms < 0;
}

void life_settle(struct life *l, int steps, const char *phase)
{
    int quiet = 0;
    life_tell(l, phase);
    for (int i = 0; i < steps && quiet < 3; i++) {
        sim_pass(&l->w, LOOK_MS);
        life_turn(l);
        quiet = at_rest(l) && !l->missing(l) ? quiet + 1 : 0;
    }
    const char *what = l->missing(l);
    const struct condition *ready = life_condition(l, COND_READY);
    must(!what, "%s: %s; Ready is %s: %s; the last plan was\n%s", phase, what, life_reason(l, COND_READY),
         ready ? ready->message : "", l->o.last_plan);
    must(quiet, "%s: it never rests; the last plan was\n%s", phase, l->o.last_plan);
}

void life_stay(struct life *l)
{
    int writes = l->o.writes;
    for (int i = 0; i < 4; i++) {
        sim_pass(&l->w, 60 * 1000);
        if (i == 2)
            sim_operator_forget(&l->o);
        l->o.dirty = true;
        life_turn(l);
    }
    must(!l->missing(l) && l->o.last_actions == 0, "it did not stay; the last plan was\n%s", l->o.last_plan);
    must(l->o.writes == writes, "another write of the status without a reason");
}

const struct condition *life_condition(const struct life *l, const char *type)
{
    if (l->w.kind == KIND_WORKERGROUP) {
        const struct workergroup_status *s = &workergroup_of(l->w.gang)->status;
        return condition_find(s->conditions, s->n_conditions, type);
    }
    const struct placementgroup_status *s = &placementgroup_of(l->w.gang)->status;
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

int32_t life_pods(const struct life *l)
{
    int32_t n = 0;
    for (int i = 0; i < SIM_PODS; i++)
        n += sim_live(&l->w.pods[i]);
    return n;
}
