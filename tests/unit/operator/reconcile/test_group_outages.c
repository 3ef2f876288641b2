// SPDX-License-Identifier: Apache-2.0
// Outages of the operator while the agents and processes of a group are well. Whatever happens to the operator, and
// however long it lasts: no pod is deleted, no attempt begins, and afterwards the group is Ready again. But an agent
// that really is dead is replaced.
//
//   SIM_SEEDS=N   how many outages            SIM_SEED=S   only that one, told step by step
#include "tests/unit/operator/reconcile/group_life.h"

#include "common/base/log.h"
#include "common/base/mem.h"
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

enum { OUTAGES = 1000, STEP_MS = 500, LOST_MS = 10 * 1000, SOON_MS = 5000 };

enum outage {
    UNREACHABLE,
    KEYS_GONE,
    KEYS_OF_OTHERS,
    ANOTHER_LEADS,
    SEEN_BY_STANDBY,
    CLOCK_SET,
    AWAY,
    FROZEN,
    OUTAGE_KINDS
};

static const char *const names[] = {"the gateway cannot be reached",
                                    "the keys are gone, and the operator was restarted",
                                    "the keys are others, and the operator was restarted",
                                    "a replica leads that nobody has dialed",
                                    "only the standby can be reached",
                                    "the clock was set, and the gateway cannot be reached",
                                    "there is no operator",
                                    "the leader does not see that its connections are dead"};

static int n_outages[OUTAGE_KINDS], n_dead;

static void pass(struct life *l, int64_t ms, bool decides)
{
    for (int64_t end = l->w.now_ms + ms; l->w.now_ms < end; sim_pass(&l->w, STEP_MS))
        if (decides)
            life_turn(l);
}

// Agents of other groups and other replicas connect to the operator, or do not.
static void others(struct life *l, bool connected)
{
    l->o.others_since_ms = connected && l->o.has_others ? l->w.now_ms : 0;
    l->o.replica_since_ms = connected ? l->w.now_ms : 0;
    l->o.others_heard_ms = 0;
}

static void cut(struct life *l)
{
    l->w.deaf[0] = l->w.deaf[1] = true;
    others(l, false);
    l->w.peers_changed = true;
}

// One connection after the other turns out to be dead, the one of the other group last.
static void find_dead(struct life *l)
{
    struct sim_world *w = &l->w;
    l->o.others_heard_ms = w->now_ms;
    l->o.replica_since_ms = 0;
    for (int i = 0; i < SIM_PODS; i++)
        if (w->pods[i].agent)
            w->pods[i].agent->mute = true;
    for (int i = 0; i < SIM_PODS; i++) {
        if (!w->pods[i].agent)
            continue;
        w->pods[i].agent->away = true;
        w->pods[i].agent->member = 0;
        w->peers_changed = true;
        pass(l, rand_range(&w->rand, 1, 2 * LOST_MS), true);
    }
    others(l, false);
}

static void all_back(struct life *l)
{
    for (int i = 0; i < SIM_PODS; i++)
        if (l->w.pods[i].agent)
            l->w.pods[i].agent->mute = l->w.pods[i].agent->away = false;
}

static void begin(struct life *l, enum outage kind)
{
    if (kind == FROZEN) {
        life_tell(l, names[kind]);
        find_dead(l);
        return;
    }
    bool restarted = kind == KEYS_GONE || kind == KEYS_OF_OTHERS || kind == ANOTHER_LEADS;
    life_tell(l, names[kind]);
    cut(l);
    if (restarted)
        sim_operator_die(&l->o);
    if (kind == KEYS_GONE)
        sim_operator_keys(&l->o, NULL);
    if (kind == KEYS_OF_OTHERS) {
        sim_operator_keys(&l->o, "ca2-install2");
        if (sim_chance(&l->w, 50)) // newer pods trust these keys
            others(l, true);
    }
    if (kind == CLOCK_SET)
        l->o.skew_ms += rand_range(&l->w.rand, -3600 * 1000, 3600 * 1000);
    if (kind == SEEN_BY_STANDBY) {
        l->w.deaf[1] = false;
        l->o.replica_since_ms = l->w.now_ms;
    }
}

static void end(struct life *l, enum outage kind)
{
    life_tell(l, "it is over");
    if (kind == AWAY)
        sim_operator_die(&l->o);
    if (kind == KEYS_GONE || kind == KEYS_OF_OTHERS)
        sim_operator_keys(&l->o, "ca1-install1");
    if (sim_chance(&l->w, 50)) { // others come back first
        others(l, true);
        pass(l, rand_range(&l->w.rand, 0, LOST_MS - STEP_MS), true);
    }
    l->w.deaf[0] = l->w.deaf[1] = false;
    l->w.peers_changed = true;
    all_back(l);
    others(l, true);
}

static void one_outage(uint64_t seed)
{
    struct rand r;
    rand_seed(&r, seed);
    const struct sim_spec spec = {.replicas = rand_range(&r, 1, 8),
                                  .template_valid = true,
                                  .agent = true,
                                  .module = rand_below(&r, 2),
                                  .restarts_worker = rand_below(&r, 2),
                                  .max_restarts = 3};
    struct life *l = life_calm(&spec);
    enum outage kind = (enum outage)(seed % OUTAGE_KINDS);
    l->w.rand = r;
    l->o.has_others = sim_chance(&l->w, 70);
    others(l, true);
    pass(l, rand_range(&l->w.rand, 5, 60) * 1000, true);
    must(life_is(l, COND_READY), "it never was Ready: %s", life_reason(l, COND_READY));
    int32_t attempt = l->attempt, incarnation = l->incarnation, deleted = l->w.n_deleted;
    begin(l, kind);
    pass(l, rand_range(&l->w.rand, 1, 20 * LOST_MS), kind != AWAY);
    must(kind != SEEN_BY_STANDBY || life_is(l, COND_READY), "Ready is %s", life_reason(l, COND_READY));
    end(l, kind);
    pass(l, SOON_MS, true);
    must(life_is(l, COND_READY), "%s; after it Ready is %s", names[kind], life_reason(l, COND_READY));
    pass(l, 3 * LOST_MS, true);
    must(life_is(l, COND_READY), "%s; long after it Ready is %s", names[kind], life_reason(l, COND_READY));
    must(l->attempt == attempt && l->incarnation == incarnation, "%s: attempt %d began", names[kind], l->attempt);
    must(l->w.n_deleted == deleted, "%s: %d pods were deleted", names[kind], l->w.n_deleted - deleted);
    n_outages[kind]++;
    life_end(l);
}

static void no_outage_costs_a_pod_or_an_attempt(void **state)
{
    (void)state;
    life_each(OUTAGES, one_outage);
    for (int i = 0; i < OUTAGE_KINDS; i++)
        print_message("%4d times %s: no pod deleted, no attempt begun\n", n_outages[i], names[i]);
}

// The evidence that the operator can be reached itself.
enum evidence { RANKS, OTHER_GROUPS, REPLICA };

static void one_death(uint64_t seed, enum evidence evidence)
{
    const struct sim_spec spec = {.replicas = evidence == RANKS ? 4 : 1,
                                  .template_valid = true,
                                  .agent = true,
                                  .module = true,
                                  .max_restarts = 3};
    struct life *l = life_calm(&spec);
    life_of_seed(seed);
    rand_seed(&l->w.rand, seed);
    l->o.has_others = evidence == OTHER_GROUPS;
    others(l, evidence != RANKS);
    if (evidence != REPLICA)
        l->o.replica_since_ms = 0;
    pass(l, 30 * 1000, true);
    struct sim_pod *p = sim_pod(&l->w, "sim-0-0");
    p->agent->hung = true;
    p->agent->member = 0;
    l->w.peers_changed = true;
    pass(l, rand_range(&l->w.rand, 3, 6) * LOST_MS, true);
    must(l->w.n_deleted == 1 && !sim_pod(&l->w, "sim-0-0"), "%d pods were deleted", l->w.n_deleted);
    must(life_is(l, COND_READY) && l->attempt == 2, "Ready is %s", life_reason(l, COND_READY));
    n_dead++;
    life_end(l);
}

static void a_dead_agent_is_replaced_in_the_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++)
        one_death(seed, (enum evidence)(seed % 3));
    print_message("%4d dead agents: each replaced, no other pod deleted\n", n_dead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_outage_costs_a_pod_or_an_attempt),
        cmocka_unit_test(a_dead_agent_is_replaced_in_the_end),
    };
    log_setup(LOG_ERROR, LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
