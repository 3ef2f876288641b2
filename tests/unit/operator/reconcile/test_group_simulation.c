// SPDX-License-Identifier: Apache-2.0
// Many random lives of one WorkerGroup. For a while everything goes wrong that can: requests are refused or lost, the
// operator dies between two actions or sees the world late, nodes fall silent or go, pods fail, people edit the spec.
// After that, nothing goes wrong any more. The group must then become what its spec asks for, using only the events
// that wake the operator, and stay so without another write of the status.
//
//   SIM_SEEDS=N   how many lives            SIM_SEED=S   only that one, told step by step
#include "tests/unit/operator/reconcile/group_life.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"
#include "tests/unit/support/group_case.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SEEDS = 2000, WILD_STEPS = 60, CALM_STEPS = 400, CALM_WRITES = 60 };

// Actions of people, and events by chance.

static struct sim_node *any_node(struct life *l)
{
    return &l->w.nodes[rand_below(&l->w.rand, SIM_NODES)];
}

static void somebody_edits(struct life *l)
{
    struct sim_spec s = l->w.spec;
    switch (rand_below(&l->w.rand, 5)) {
    case 0:
        s.replicas = 1 + (int32_t)rand_below(&l->w.rand, 4);
        break;
    case 1:
        s.template_version++;
        s.template_valid = sim_chance(&l->w, 75);
        break;
    case 2:
        s.suspend = !s.suspend;
        break;
    case 3:
        s.max_restarts++;
        break;
    case 4:
        s.worker_version++;
        break;
    }
    life_tell(l, "somebody edits the spec");
    sim_edit(&l->w, &s);
}

static void a_node_changes(struct life *l)
{
    struct sim_node *n = any_node(l);
    if (!n->now) {
        life_tell(l, "a node is added");
        sim_node_add(&l->w, n);
    } else if (sim_chance(&l->w, 25)) {
        life_tell(l, "a node is removed");
        sim_node_remove(&l->w, n);
    } else if (sim_chance(&l->w, 50)) {
        life_tell(l, n->ready ? "a node falls silent" : "a node is back");
        sim_node_ready(&l->w, n, !n->ready);
    } else {
        n->foreign = (int32_t)rand_below(&l->w.rand, (uint64_t)n->gpus + 1);
        n->contended = sim_chance(&l->w, 20);
        sim_node_ready(&l->w, n, n->ready);
    }
}

static void something_happens(struct life *l)
{
    struct sim_world *w = &l->w;
    struct sim_pod *p = sim_any_pod(&l->w);
    switch (rand_below(&w->rand, 13)) {
    case 0:
        somebody_edits(l);
        break;
    case 1:
    case 2:
        a_node_changes(l);
        break;
    case 3:
        w->quota = sim_chance(w, 50) ? (int32_t)rand_below(&w->rand, 4) : SIM_PODS;
        break;
    case 4:
        w->forbidden = sim_chance(w, 20);
        break;
    case 5:
        life_tell(l, "the Service is deleted");
        sim_delete_service(w);
        break;
    case 11:
        life_tell(l, "the EndpointSlice is deleted");
        sim_delete_slice(w);
        break;
    case 6:
        life_tell(l, "a pod is evicted");
        if (p)
            sim_evict(w, p);
        break;
    case 7:
        life_tell(l, "a pod is deleted");
        if (p)
            sim_delete_pod(w, p->now->obj.meta.name, p->now->obj.meta.uid, sim_chance(w, 30) ? 0 : -1);
        break;
    case 8:
        life_tell(l, "a pod fails");
        if (p)
            sim_fail(w, p);
        break;
    case 9:
        if (p && p->agent) {
            life_tell(l, "an agent loses its connection");
            sim_agent_cut(p->agent, (int)rand_below(&w->rand, SIM_LINES));
        }
        break;
    case 10:
        if (p && p->agent) {
            life_tell(l, "a process is killed");
            sim_agent_exit(p->agent, w, 137, 9);
        }
        break;
    default:
        break;
    }
}

static void calm_down(struct life *l)
{
    struct sim_world *w = &l->w;
    life_tell(l, "all is calm from now on");
    w->calm = true;
    w->quota = SIM_PODS;
    w->forbidden = false;
    for (int i = 0; i < SIM_NODES; i++)
        w->nodes[i].contended = false;
    sim_land(&l->w);
}

// The state that the group must reach.

static int32_t free_gpus(const struct life *l, bool on_one_node)
{
    int32_t sum = 0, most = 0;
    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_node *n = &l->w.nodes[i];
        int32_t gpus = n->now && n->ready ? n->gpus - n->foreign : 0;
        sum += gpus;
        most = MAX(most, gpus);
    }
    return on_one_node ? most : sum;
}

static const char *hash_text(const struct life *l)
{
    static char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, group_case_hash(life_group(l)));
    return text;
}

// NULL: the group is as its spec asks. Otherwise what is missing.
static const char *unfulfilled(const struct life *l)
{
    const struct workergroup *wg = life_group(l);
    const struct workergroup_status *s = &wg->status;
    const struct sim_spec *spec = &l->w.spec;
    int32_t live = life_pods(l);
    if (s->observed_generation != wg->obj.meta.generation)
        return "the status describes an older spec";
    if (life_is(l, COND_SUCCEEDED) || life_is(l, COND_FAILED)) {
        if (live)
            return "a finished group has live pods";
        bool old = spec->template_valid && !str_eq(s->revision.pods, hash_text(l));
        return old ? "it has ended with an earlier spec" : NULL;
    }
    if (spec->suspend)
        return live || !life_is(l, COND_SUSPENDED) ? "not suspended" : NULL;
    if (life_is(l, COND_SUSPENDED))
        return "suspended";
    if (!spec->template_valid) {
        if (!str_eq(life_reason(l, COND_ACCEPTED), REASON_INVALID_TEMPLATE))
            return "a template that is refused is not said to be";
        bool said = life_is(l, COND_READY) || str_eq(life_reason(l, COND_READY), REASON_INVALID_TEMPLATE);
        if (l->w.mode != SIM_RUNS_ON && life_is(l, COND_READY))
            return "what runs of the earlier spec has not come to its end";
        return live && l->w.mode == SIM_RUNS_ON && !said ? "pods of the earlier spec are not ready" : NULL;
    }
    bool fits = spec->replicas <= free_gpus(l, spec->strict_pack);
    if (!fits && str_eq(life_reason(l, COND_ACCEPTED), REASON_INFEASIBLE)) // the change costs nothing that runs
        return life_is(l, COND_READY) || str_eq(life_reason(l, COND_READY), REASON_INFEASIBLE) ? NULL
                                                                                               : "does not say why";
    if (!life_is(l, COND_ACCEPTED))
        return "not accepted";
    if (!live && !fits) {
        bool waits = str_eq(life_reason(l, COND_READY), REASON_INSUFFICIENT) ||
                     str_eq(life_reason(l, COND_READY), REASON_INFEASIBLE);
        return waits ? NULL : "does not wait for room";
    }
    if (l->w.mode != SIM_RUNS_ON)
        return "not finished";
    if (live != spec->replicas || s->ready_replicas != spec->replicas || !life_is(l, COND_READY))
        return "not all pods run";
    for (int i = 0; i < SIM_PODS; i++)
        if (sim_live(&l->w.pods[i]) && pod_spec_hash(l->w.pods[i].now) != group_case_hash(wg))
            return "pods of an earlier spec run";
    for (int i = 0; i < SIM_PODS; i++)
        if (sim_live(&l->w.pods[i]) && spec->agent && l->w.pods[i].agent->worker_version != spec->worker_version)
            return "processes of an earlier worker run";
    return l->w.service ? NULL : "no Service";
}

// At rest, every host name leads to its pod, and there are no other names. NULL: it is so.
static const char *misnamed(struct life *l)
{
    struct sim_world *w = &l->w;
    size_t named = 0;
    if (!w->service)
        return NULL;
    for (int i = 0; i < SIM_PODS; i++) {
        const struct sim_pod *p = &w->pods[i];
        if (!sim_live(p) || !p->ip)
            continue;
        named++;
        if (!str_eq(sim_address(w, p->index), p->ip))
            return "the name of a pod leads to another address";
    }
    return named == sim_names(w) ? NULL : "names of pods that no longer exist";
}

static const char *missing(struct life *l)
{
    const char *what = unfulfilled(l);
    return what ? what : misnamed(l);
}

static void check_end(const struct life *l)
{
    const struct group_failure *f = &life_group(l)->status.last_failure;
    if (str_eq(life_reason(l, COND_FAILED), REASON_MAX_RESTARTS))
        must(life_group(l)->status.restarts_counted <= l->w.spec.max_restarts && f->time_ms, "failed too early");
    if (life_is(l, COND_FAILED) && !str_eq(life_reason(l, COND_FAILED), REASON_DEADLINE_EXCEEDED))
        must(f->rank >= 0 && f->pod && f->reason, "it failed, but who?");
    must(l->w.mode != SIM_SUCCEEDS || !life_is(l, COND_READY) || life_pods(l), "nobody is ready");
}

static void one_life(uint64_t seed)
{
    struct life *l = life_wild(seed);
    l->missing = missing;
    life_wild_steps(l, WILD_STEPS, something_happens);
    calm_down(l);
    int writes = l->o.writes;
    life_settle(l, CALM_STEPS, "calm");
    must(l->o.writes - writes <= CALM_WRITES, "%d writes of the status", l->o.writes - writes);
    check_end(l);
    life_stay(l);
    life_end(l);
}

static void every_life_ends_as_its_spec_asks(void **state)
{
    (void)state;
    life_each(SEEDS, one_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_life_ends_as_its_spec_asks),
    };
    log_setup(LOG_ERROR, LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
