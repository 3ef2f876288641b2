// SPDX-License-Identifier: Apache-2.0
// Lives of one PlacementGroup. First one in good order, in which the operator dies at every request in turn, and a
// standby takes over that has not seen the last changes. Then many random lives. For a while everything goes wrong that
// can, then nothing does any more. The PlacementGroup must then become what its spec asks for, and stay so without
// another request.
//
//   SIM_SEEDS=N   how many random lives     SIM_SEED=S   only that one, told step by step
#include "tests/unit/operator/reconcile/gang_life.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/bundles.h"
#include "operator/reconcile/placementgroup_pods.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SEEDS = 500, WILD_STEPS = 60, CALM_STEPS = 600, LAG_MAX = 4, REQUESTS_MAX = 200 };

static const char *const strategies[] = {"Pack", "Spread", "StrictPack", "StrictSpread"};
static const char *const pods_per[] = {"Node", "Bundle"};

// How many pods have each bundle, and on how many nodes the bundles are.
struct bundle_pods {
    int times[SIM_BUNDLES], nodes, most_on_a_node, pods;
};

static void bundle_pods_of(const struct life *l, struct bundle_pods *ret)
{
    struct arena a = ARENA_INIT;
    struct bundles b;
    struct err err = ERR_INIT;
    *ret = (struct bundle_pods){0};
    assert_int_equal(bundles_expand(&placementgroup_of(l->w.gang)->spec, &a, &b, &err), 0);
    for (int i = 0; i < SIM_NODES; i++) {
        int here = 0;
        for (int k = 0; k < SIM_PODS; k++) {
            const struct sim_pod *p = &l->w.pods[k];
            int32_t *items;
            size_t n;
            bool same;
            if (!sim_live(p) || p->asked_ms || !str_eq(p->node, l->w.nodes[i].name))
                continue;
            ret->pods++;
            must(bundles_of_pod(&b, p->now, &a, &items, &n, &same), "%s has no bundles", p->now->obj.meta.name);
            for (size_t j = 0; j < n; j++)
                ret->times[items[j]]++;
            here += (int)n;
        }
        ret->nodes += here > 0;
        ret->most_on_a_node = MAX(ret->most_on_a_node, here);
    }
    arena_done(&a);
}

// NULL: the PlacementGroup is as its spec asks, on nodes that have room for all. Otherwise what is missing.
static const char *missing(struct life *l)
{
    const struct placementgroup *plg = placementgroup_of(l->w.gang);
    const char *strategy = l->w.bundles.strategy;
    struct bundle_pods h;
    if (plg->status.observed_generation != l->w.generation)
        return "the status describes an older spec";
    if (!life_is(l, COND_READY))
        return "not Ready";
    bundle_pods_of(l, &h);
    for (int i = 0; i < SIM_BUNDLES; i++)
        if (h.times[i] != (i < l->w.bundles.n))
            return h.times[i] ? "two pods have a bundle, or there is no such bundle" : "a bundle has no pod";
    if (life_pods(l) != h.pods)
        return "a pod is too many";
    if (str_eq(strategy, "StrictPack") && h.nodes != 1)
        return "not packed";
    if (str_eq(strategy, "StrictSpread") && h.most_on_a_node != 1)
        return "not spread";
    return l->w.service || !l->w.used ? NULL : "no Service for the groups that run on it";
}

static void check_status(struct life *l)
{
    const struct placementgroup_status *s = &placementgroup_of(l->w.gang)->status;
    must(s->incarnation >= l->incarnation, "incarnation went from %d to %d", l->incarnation, s->incarnation);
    l->incarnation = s->incarnation;
}

static struct life *life_begin(uint64_t seed, const struct sim_bundles *spec)
{
    struct life *l = xcalloc(1, sizeof *l);
    l->check = check_status;
    l->missing = missing;
    sim_init_bundles(&l->w, seed, spec);
    l->w.calm = true;
    sim_operator_init(&l->o, &l->w);
    return l;
}

// ---- one life in good order -----------------------------------------------------------------------------------------

struct crash {
    int at; // 0 = none
    bool after;
    size_t lag;
};

static void lose_a_pod(struct life *l)
{
    int i = 0;
    while (!sim_live(&l->w.pods[i]))
        i++;
    sim_delete_pod(&l->w, l->w.pods[i].now->obj.meta.name, l->w.pods[i].now->obj.meta.uid, -1);
}

static void lose_a_node(struct life *l)
{
    int i = 0;
    while (!sim_live(&l->w.pods[i]))
        i++;
    for (int k = 0; k < SIM_NODES; k++)
        if (str_eq(l->w.nodes[k].name, l->w.pods[i].node))
            sim_node_ready(&l->w, &l->w.nodes[k], false);
    sim_pass(&l->w, 15 * 1000);
    for (int k = 0; k < SIM_NODES; k++)
        if (!l->w.nodes[k].ready)
            sim_node_ready(&l->w, &l->w.nodes[k], true);
}

// The PlacementGroup is created, repaired twice, grown, shrunk, and made again. Returns how many requests that took.
// *ret_pods is the number of pods that were created.
static int one_life(const struct sim_bundles *first, const struct crash *crash, int *ret_pods, int *ret_deaths)
{
    struct sim_bundles spec = *first;
    struct life *l = life_begin(1, &spec);
    snprintf(life_name, sizeof life_name, "%s, podPer %s, the operator dies %s request %d, %zu changes unseen",
             spec.strategy, spec.pod_per, crash->after ? "after" : "before", crash->at, crash->lag);
    l->o.crash_at = crash->at;
    l->o.crash_after = crash->after;
    l->o.lag = crash->lag;
    life_settle(l, CALM_STEPS, "created");
    lose_a_pod(l);
    life_settle(l, CALM_STEPS, "a pod is lost");
    spec.n += 1;
    sim_edit_bundles(&l->w, &spec);
    life_settle(l, CALM_STEPS, "grown");
    lose_a_node(l);
    life_settle(l, CALM_STEPS, "a node was silent");
    spec.n -= 2;
    sim_edit_bundles(&l->w, &spec);
    life_settle(l, CALM_STEPS, "shrunk");
    spec.version++;
    sim_edit_bundles(&l->w, &spec);
    life_settle(l, CALM_STEPS, "made again");
    int requests = l->o.requests;
    *ret_pods = l->w.uids;
    *ret_deaths = l->o.deaths;
    life_end(l);
    return requests;
}

static void killed_everywhere(const struct sim_bundles *spec, bool after)
{
    int pods, deaths, requests = one_life(spec, &(struct crash){0}, &pods, &deaths);
    assert_in_range(requests, 10, REQUESTS_MAX);
    for (struct crash c = {1, after, 0}; c.at <= requests; c.at++)
        for (c.lag = 0; c.lag <= LAG_MAX; c.lag += 2) {
            int created, died;
            one_life(spec, &c, &created, &died);
            assert_int_equal(died, 1);
            must(created == pods, "%d pods are created, not %d", created, pods);
        }
}

static void an_operator_that_dies_at_any_request_costs_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++)
        for (size_t k = 0; k < ARRAY_LEN(pods_per); k++) {
            struct sim_bundles spec = {strategies[i], pods_per[k], 3, 1};
            killed_everywhere(&spec, false);
            killed_everywhere(&spec, true);
        }
}

// ---- many wild lives ------------------------------------------------------------------------------------------------

static void a_node_changes(struct life *l)
{
    struct sim_node *n = &l->w.nodes[rand_below(&l->w.rand, SIM_NODES)];
    n->gpus = 1 + (int32_t)rand_below(&l->w.rand, SIM_BUNDLES);
    n->contended = sim_chance(&l->w, 20);
    if (n->now && sim_chance(&l->w, 25))
        sim_node_remove(&l->w, n);
    else
        sim_node_ready(&l->w, n, sim_chance(&l->w, 60));
    life_tell(l, "a node changes");
}

static void somebody_edits(struct life *l)
{
    struct sim_bundles s = l->w.bundles;
    if (sim_chance(&l->w, 30))
        s.version++;
    else
        s.n = 1 + (int32_t)rand_below(&l->w.rand, str_eq(s.strategy, "StrictSpread") ? SIM_NODES : SIM_BUNDLES);
    sim_edit_bundles(&l->w, &s);
    life_tell(l, "somebody edits the spec");
}

// The first group that comes wakes its controller.
static void groups_come_and_go(struct life *l)
{
    l->w.used = !l->w.used;
    l->o.dirty = l->o.dirty || l->w.used;
    life_tell(l, l->w.used ? "a group comes to it" : "its last group goes");
}

static void something_happens(struct life *l)
{
    struct sim_pod *p = sim_any_pod(&l->w);
    switch (rand_below(&l->w.rand, 8)) {
    case 0:
        somebody_edits(l);
        break;
    case 1:
    case 2:
        a_node_changes(l);
        break;
    case 3:
        l->w.quota = sim_chance(&l->w, 50) ? (int32_t)rand_below(&l->w.rand, 4) : SIM_PODS;
        break;
    case 4:
        sim_delete_service(&l->w);
        break;
    case 5:
        if (p)
            sim_delete_pod(&l->w, p->now->obj.meta.name, p->now->obj.meta.uid, sim_chance(&l->w, 30) ? 0 : -1);
        break;
    case 6:
        if (p)
            sim_fail(&l->w, p);
        break;
    case 7:
        groups_come_and_go(l);
        break;
    default:
        break;
    }
}

// From now on every node has room for everything, and the clocks differ by seconds only.
static void calm_down(struct life *l)
{
    l->w.calm = true;
    l->w.quota = SIM_PODS;
    l->o.max_skew_ms = l->o.skew_ms % 3000;
    for (int i = 0; i < SIM_NODES; i++) {
        struct sim_node *n = &l->w.nodes[i];
        n->gpus = SIM_BUNDLES;
        n->contended = false;
        sim_node_ready(&l->w, n, true);
    }
    sim_land(&l->w);
}

static void wild_life(uint64_t seed)
{
    struct sim_bundles spec = {strategies[seed % 4], pods_per[seed / 4 % 2], 1 + (int32_t)(seed / 8 % 4), 1};
    struct life *l = life_begin(seed, &spec);
    l->w.calm = false;
    life_wild_steps(l, WILD_STEPS, something_happens);
    calm_down(l);
    life_settle(l, CALM_STEPS, "calm");
    int requests = l->o.requests;
    life_stay(l);
    must(l->o.requests == requests, "another request without a reason");
    life_end(l);
}

static void every_life_ends_as_its_spec_asks(void **state)
{
    (void)state;
    life_each(SEEDS, wild_life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operator_that_dies_at_any_request_costs_nothing),
        cmocka_unit_test(every_life_ends_as_its_spec_asks),
    };
    log_setup(LOG_ERROR, LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
