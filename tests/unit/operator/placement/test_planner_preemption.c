// SPDX-License-Identifier: Apache-2.0
// Preemption against brute force: small random clusters full of pods of several priorities, and gangs of one shape. A
// gang that fits into free room evicts no pod. A gang that does not fit is placed whenever there is a way at all. No
// pod of the same or a higher priority goes, and the highest priority that goes is as low as possible. Mostly, as few
// pods go as possible.
#include "tests/unit/support/placement_builder.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CASES = 4000, NODES = 4, PODS = 4, BUNDLES = 5, RACKS = 2, LEVELS = 4, NOBODY = -1 };

struct guest {
    int gpus, priority;
};

struct spot {
    int gpus, rack, n;
    struct guest guests[PODS]; // in the order in which kube-scheduler spares them: the important ones first
};

struct puzzle {
    struct spot spots[NODES];
    int n_spots;
    enum strategy strategy;
    bool by_rack;
    int gpus, n, priority;
};

static int up_to(struct rand *r, int n)
{
    return (int)rand_below(r, (uint64_t)n + 1);
}

static struct puzzle make_puzzle(struct rand *r)
{
    struct puzzle p = {.n_spots = 1 + up_to(r, NODES - 1), .strategy = (enum strategy)up_to(r, 3)};
    p.by_rack = up_to(r, 2) == 0;
    p.gpus = 1 + (up_to(r, 3) == 0);
    p.n = 1 + up_to(r, BUNDLES - 1);
    p.priority = up_to(r, LEVELS);
    for (int i = 0; i < p.n_spots; i++) {
        struct spot *s = &p.spots[i];
        s->gpus = 4;
        s->rack = up_to(r, RACKS - 1);
        for (int left = 4, priority = LEVELS - 1; left > 0 && s->n < PODS; s->n++) {
            struct guest g = {1 + up_to(r, MIN(left, 3) - 1), up_to(r, priority)};
            priority = g.priority;
            left -= g.gpus;
            if (left <= 1 && up_to(r, 1))
                break;
            s->guests[s->n] = g;
        }
    }
    return p;
}

static const char *write_puzzle(struct buf *b, const struct puzzle *p)
{
    for (int i = 0; i < p->n_spots; i++) {
        const struct spot *s = &p->spots[i];
        buf_printf(b, "node n%d gpu=%d rack=r%d\n", i, s->gpus, s->rack);
        for (int k = 0; k < s->n; k++)
            buf_printf(b, "pod p%d%d on=n%d gpu=%d priority=%d age=%d\n", i, k, i, s->guests[k].gpus,
                       s->guests[k].priority, PODS - k);
    }
    buf_printf(b, "gang %s%s priority=%d\nbundles %d gpu=%d\n", strategy_name(p->strategy),
               p->by_rack ? " key=rack" : "", p->priority, p->n, p->gpus);
    return buf_str(b);
}

// The cost of room for so many bundles, if pods with priority <= level may go.
struct cost {
    bool possible;
    int pods, priority;
};

static struct cost cost_on(const struct puzzle *p, const struct spot *s, int bundles, int level)
{
    struct cost c = {.priority = NOBODY};
    int free = s->gpus - bundles * p->gpus;
    for (int k = 0; k < s->n; k++)
        free -= s->guests[k].priority > level ? s->guests[k].gpus : 0;
    c.possible = free >= 0;
    for (int k = 0; k < s->n; k++) {
        const struct guest *g = &s->guests[k];
        if (g->priority > level)
            continue;
        if (g->gpus <= free) {
            free -= g->gpus;
        } else {
            c.pods++;
            c.priority = MAX(c.priority, g->priority);
        }
    }
    return c;
}

static bool allowed(const struct puzzle *p, const int *taken)
{
    int held[NODES] = {0}, domains = 0, most = 0;
    for (int i = 0; i < NODES; i++)
        held[p->by_rack ? p->spots[i].rack % NODES : i] += taken[i];
    for (int d = 0; d < NODES; d++) {
        domains += held[d] > 0;
        most = MAX(most, held[d]);
    }
    return p->strategy == STRATEGY_STRICT_PACK ? domains == 1 : p->strategy != STRATEGY_STRICT_SPREAD || most == 1;
}

static struct cost cost_of(const struct puzzle *p, const int *taken, int level)
{
    struct cost sum = {.possible = allowed(p, taken), .priority = NOBODY};
    for (int i = 0; i < p->n_spots && sum.possible; i++) {
        if (!taken[i])
            continue;
        struct cost c = cost_on(p, &p->spots[i], taken[i], level);
        sum.possible = c.possible;
        sum.pods += c.pods;
        sum.priority = MAX(sum.priority, c.priority);
    }
    return sum;
}

static void try_all(const struct puzzle *p, int *taken, int spot, int left, int level, struct cost *best)
{
    if (spot == NODES || spot == p->n_spots) {
        struct cost c = cost_of(p, taken, level);
        if (!left && c.possible && (!best->possible || c.pods < best->pods))
            *best = c;
        return;
    }
    for (int k = 0; k <= left; k++) {
        taken[spot] = k;
        try_all(p, taken, spot + 1, left - k, level, best);
    }
    taken[spot] = 0;
}

// The cost at the lowest level that is enough. *ret_level NOBODY = no pod has to go.
static struct cost cheapest(const struct puzzle *p, int *ret_level)
{
    struct cost best = {0};
    for (*ret_level = NOBODY; *ret_level < p->priority; ++*ret_level) {
        try_all(p, (int[NODES]){0}, 0, p->n, *ret_level, &best);
        if (best.possible)
            break;
    }
    return best;
}

static const char *check(const struct puzzle *p, const struct placement *got, int *ret_extra)
{
    int level, taken[NODES] = {0};
    struct cost best = cheapest(p, &level);
    if ((got->verdict == VERDICT_PLACED) != best.possible)
        return best.possible ? "not placed, but there is a way" : "placed, but there is no way";
    if (!best.possible)
        return NULL;
    for (int i = 0; i < p->n; i++)
        taken[(got->nodes[i][1] - '0') % NODES]++;
    struct cost c = cost_of(p, taken, level);
    if (!c.possible)
        return "not with pods of that priority alone";
    if ((size_t)c.pods != got->n_victims)
        return "another number of victims than it says";
    *ret_extra = c.pods - best.pods;
    return NULL;
}

static void the_lowest_priorities_go_and_only_where_they_must(void **state)
{
    (void)state;
    int evicting = 0, costlier = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct rand r;
        rand_seed(&r, seed);
        struct puzzle p = make_puzzle(&r);
        struct buf text = BUF_INIT(1 << 16);
        struct world *w = world_new(write_puzzle(&text, &p));
        struct placement got;
        int extra = 0;
        world_place(w, w->gangs[0], &got);
        const char *wrong = check(&p, &got, &extra);
        if (wrong)
            fail_msg("seed %llu: %s\n%s%s", (unsigned long long)seed, wrong, buf_str(&text),
                     world_answer(w, w->gangs[0]));
        evicting += got.n_victims > 0;
        costlier += extra > 0;
        world_free(w);
        buf_done(&text);
    }
    assert_in_range(evicting, CASES / 8, CASES / 2);
    assert_in_range(costlier * 20, 0, evicting); // one in twenty at most
}

static void a_gang_never_counts_its_own_pods_as_gone(void **state)
{
    (void)state;
    struct world *w = world_new("node n1 gpu=4\n"
                                "pod mine on=n1 gpu=4 priority=0 group=me\n"
                                "gang Pack priority=10 uid=me\n"
                                "bundles 1 gpu=1\n"
                                "gang Pack priority=10 uid=you\n"
                                "bundles 1 gpu=1\n");
    assert_true(str_starts(world_answer(w, w->gangs[0]), "Insufficient"));
    assert_string_equal(world_answer(w, w->gangs[1]), "Placed, evicts 1\nn1: 0\n");
    w->gangs[0]->gang.ns = "another"; // a pod that names an owner in another namespace does not belong to that owner
    assert_string_equal(world_answer(w, w->gangs[0]), "Placed, evicts 1\nn1: 0\n");
    world_free(w);
}

static const char *targets(const char *text)
{
    static char line[256];
    struct world *w = world_new(text);
    const char **nodes;
    size_t len = 0;
    line[0] = '\0';
    if (planner_target(w->cluster, &w->gangs[0]->gang, &w->arena, &nodes))
        for (size_t i = 0; i < w->gangs[0]->gang.n_bundles; i++)
            len += (size_t)snprintf(line + len, sizeof line - len, "%s%s", i ? " " : "", nodes[i]);
    world_free(w);
    return line;
}

static void what_is_held_for_a_gang_is_where_the_fewest_pods_of_gangs_are_in_the_way(void **state)
{
    (void)state;
    static const char nodes[] = "node n1 gpu=4\nnode n2 gpu=4\nnode n3 gpu=4\n"
                                "pod other on=n1 gpu=1\n"
                                "pod a1 on=n2 gpu=1 group=a priority=100\npod a2 on=n2 gpu=1 group=a\n"
                                "pod b on=n3 gpu=3 group=b\n";
    _cleanup_(free_p) char *one = xasprintf("%sgang StrictPack\nbundles 4 gpu=1\n", nodes);
    assert_string_equal(targets(one), "n3 n3 n3 n3");
    _cleanup_(free_p) char *two = xasprintf("%sgang StrictSpread\nbundles 2 gpu=4\n", nodes);
    assert_string_equal(targets(two), "n2 n3");
    _cleanup_(free_p) char *all = xasprintf("%sgang StrictSpread\nbundles 3 gpu=4\n", nodes);
    assert_string_equal(targets(all), "n1 n2 n3"); // other people's pods end some day too
    _cleanup_(free_p) char *never = xasprintf("%sgang StrictPack\nbundles 1 gpu=5\n", nodes);
    assert_string_equal(targets(never), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_priorities_go_and_only_where_they_must),
        cmocka_unit_test(a_gang_never_counts_its_own_pods_as_gone),
        cmocka_unit_test(what_is_held_for_a_gang_is_where_the_fewest_pods_of_gangs_are_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
