// SPDX-License-Identifier: Apache-2.0
// The planner against brute force: small random clusters, and every way to distribute the bundles is tried. With one
// shape, the planner must be as good as brute force. With several shapes it must never be wrong, and seldom miss a way.
// The oracle knows the cluster from the numbers that it was made from, and uses none of the code under test. A failure
// prints the seed and the case in the words of placement_builder.h.
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

enum { CASES = 10000, NODES = 5, BUNDLES = 6, GPUS = 4, RACKS = 3, NO_RACK = RACKS };

struct spot { // a node
    const char *name;
    int gpus, cpus, slots;                // allocatable
    int used_gpus, used_cpus, used_slots; // by other people's pods
    int rack;
    bool cordoned, not_ready, tainted, selected, avoided;
    int fixed; // bundles of the gang that are already there
};

struct puzzle {
    struct spot spots[NODES];
    int n_spots;
    enum strategy strategy;
    bool by_rack, tolerates, selects;
    bool per_node;  // bundles of a node share one pod
    int gpus, cpus; // of one bundle
    int n, n_fixed; // bundles to place, and bundles that are already there
};

// The names are out of order, and some contain numbers of two digits.
static const char *const names[NODES] = {"n10", "n2", "n1", "m3", "n20"};
static const char *const racks[RACKS] = {"r2", "r10", "r1"};

static bool one_in(struct rand *r, uint64_t n)
{
    return rand_below(r, n) == 0;
}

static int up_to(struct rand *r, int n)
{
    return (int)rand_below(r, (uint64_t)n + 1);
}

static void make_spot(struct rand *r, struct spot *s)
{
    s->gpus = one_in(r, 5) ? 0 : 1 + up_to(r, GPUS - 1);
    s->cpus = 2 + up_to(r, 6);
    s->slots = one_in(r, 6) ? up_to(r, 2) : 10;
    s->rack = one_in(r, 8) ? NO_RACK : up_to(r, RACKS - 1);
    s->cordoned = one_in(r, 12);
    s->not_ready = one_in(r, 12);
    s->tainted = one_in(r, 6);
    s->selected = !one_in(r, 3);
    s->avoided = one_in(r, 6);
    s->used_gpus = one_in(r, 3) ? up_to(r, s->gpus) : 0;
    s->used_cpus = one_in(r, 3) ? up_to(r, s->cpus) : 0;
    s->used_slots = s->used_gpus || s->used_cpus ? MIN(1, s->slots) : 0;
}

static bool has_domain(const struct puzzle *p, const struct spot *s)
{
    return !p->by_rack || s->rack != NO_RACK;
}

static struct puzzle make_puzzle(struct rand *r)
{
    struct puzzle p = {.n_spots = one_in(r, 50) ? 0 : 2 + up_to(r, NODES - 2), .strategy = (enum strategy)up_to(r, 3)};
    p.by_rack = one_in(r, 2);
    p.tolerates = one_in(r, 2);
    p.selects = one_in(r, 4);
    p.per_node = one_in(r, 3);
    p.gpus = one_in(r, 4) ? 0 : one_in(r, 4) ? 2 : 1;
    p.cpus = 1 + up_to(r, 2);
    p.n = 1 + up_to(r, up_to(r, BUNDLES - 1));
    for (int i = 0; i < p.n_spots; i++) {
        p.spots[i].name = names[i];
        make_spot(r, &p.spots[i]);
    }
    // Bundles that are already there are placed as the strategy would place them.
    if (p.n_spots && !p.per_node && one_in(r, 4)) {
        struct spot *s = &p.spots[up_to(r, p.n_spots - 1)];
        bool fits = s->gpus - s->used_gpus >= p.gpus && s->cpus - s->used_cpus >= p.cpus && s->slots > s->used_slots;
        if (fits && has_domain(&p, s))
            s->fixed = p.n_fixed = 1;
    }
    return p;
}

static bool is_open(const struct puzzle *p, const struct spot *s)
{
    return !s->cordoned && !s->not_ready && (!s->tainted || p->tolerates) && (s->selected || !p->selects) &&
           has_domain(p, s);
}

static int room_of(const struct puzzle *p, const struct spot *s, bool empty)
{
    if (!is_open(p, s))
        return 0;
    int gpus = s->gpus - s->fixed * p->gpus - (empty ? 0 : s->used_gpus);
    int cpus = s->cpus - s->fixed * p->cpus - (empty ? 0 : s->used_cpus);
    int slots = s->slots - s->fixed - (empty ? 0 : s->used_slots);
    int n = 0;
    for (; gpus >= p->gpus && cpus >= p->cpus && slots >= 1; n++) {
        gpus -= p->gpus;
        cpus -= p->cpus;
        slots -= !p->per_node;
    }
    return n;
}

// How one way to distribute the bundles looks to the strategy.
struct shares {
    int domains; // with at least one bundle
    int spread;  // the most minus the least bundles of these domains
};

static bool judge(const struct puzzle *p, const int *taken, struct shares *ret)
{
    int held[NODES + RACKS + 1] = {0}, added[NODES + RACKS + 1] = {0};
    for (int i = 0; i < p->n_spots; i++) {
        int d = p->by_rack ? NODES + p->spots[i].rack : i;
        held[d] += taken[i] + p->spots[i].fixed;
        added[d] += taken[i];
    }
    int most = 0, least = INT32_MAX;
    *ret = (struct shares){0};
    for (size_t d = 0; d < ARRAY_LEN(held); d++) {
        if (!held[d])
            continue;
        ret->domains++;
        most = MAX(most, held[d]);
        least = MIN(least, held[d]);
        if (p->strategy == STRATEGY_STRICT_SPREAD && held[d] > 1 && added[d])
            return false;
    }
    ret->spread = ret->domains ? most - least : 0;
    return p->strategy != STRATEGY_STRICT_PACK || ret->domains <= 1;
}

struct oracle {
    const struct puzzle *p;
    int room[NODES];
    int taken[NODES];
    bool found;
    struct shares best;
};

static bool beats(const struct puzzle *p, struct shares a, struct shares b)
{
    if (p->strategy == STRATEGY_PACK)
        return a.domains < b.domains;
    if (p->strategy == STRATEGY_SPREAD)
        return a.domains != b.domains ? a.domains > b.domains : a.spread < b.spread;
    return false;
}

static void try_all(struct oracle *o, int spot, int left)
{
    if (spot == o->p->n_spots) {
        struct shares now;
        if (left || !judge(o->p, o->taken, &now))
            return;
        if (!o->found || beats(o->p, now, o->best))
            o->best = now;
        o->found = true;
        return;
    }
    for (int k = 0; k <= MIN(left, o->room[spot]); k++) {
        o->taken[spot] = k;
        try_all(o, spot + 1, left - k);
    }
    o->taken[spot] = 0;
}

enum { KEEP_OFF_AVOIDED = 1, KEEP_OFF_GPUS = 2 };

static struct oracle ask(const struct puzzle *p, bool empty, int keep_off)
{
    struct oracle o = {.p = p};
    for (int i = 0; i < p->n_spots; i++) {
        const struct spot *s = &p->spots[i];
        bool off = ((keep_off & KEEP_OFF_AVOIDED) && s->avoided) || ((keep_off & KEEP_OFF_GPUS) && s->gpus && !p->gpus);
        o.room[i] = off ? 0 : room_of(p, s, empty);
    }
    try_all(&o, 0, p->n);
    return o;
}

// The best result that is possible with the nodes that should be avoided.
static struct oracle ask_with_care(const struct puzzle *p)
{
    bool pack = p->strategy == STRATEGY_PACK || p->strategy == STRATEGY_STRICT_PACK;
    static const int tries[] = {KEEP_OFF_AVOIDED | KEEP_OFF_GPUS, KEEP_OFF_AVOIDED, KEEP_OFF_GPUS, 0};
    struct oracle o = {0};
    for (size_t i = 0; i < ARRAY_LEN(tries) && !o.found; i++)
        o = ask(p, false, pack ? tries[i] : tries[i] & KEEP_OFF_AVOIDED);
    return o;
}

static void write_spot(struct buf *b, const struct spot *s)
{
    buf_printf(b, "node %s gpu=%d cpu=%d pods=%d", s->name, s->gpus, s->cpus, s->slots);
    buf_printf(b, " used.gpu=%d used.cpu=%d used.pods=%d", s->used_gpus, s->used_cpus, s->used_slots);
    if (s->rack != NO_RACK)
        buf_printf(b, " rack=%s", racks[s->rack]);
    buf_printf(b, "%s%s%s%s\n", s->cordoned ? " cordoned" : "", s->not_ready ? " notready" : "",
               s->tainted ? " taint=own:NoSchedule" : "", s->selected ? " chosen=yes" : "");
}

static void write_bundles(struct buf *b, const struct puzzle *p, int n, const char *on)
{
    buf_printf(b, "bundles %d gpu=%d cpu=%d%s%s%s%s%s\n", n, p->gpus, p->cpus, p->per_node ? " pods=1m" : "",
               p->tolerates ? " tolerate=own:NoSchedule" : "", p->selects ? " select.chosen=yes" : "", on ? " on=" : "",
               on ? on : "");
}

// The nodes start with the one at `first`: the order in which the cluster gets to know them must not matter.
static void write_puzzle(struct buf *b, const struct puzzle *p, int first)
{
    for (int i = 0; i < p->n_spots; i++)
        write_spot(b, &p->spots[(first + i) % p->n_spots]);
    buf_printf(b, "gang %s%s\n", strategy_name(p->strategy), p->by_rack ? " key=rack" : "");
    write_bundles(b, p, p->n, NULL);
    for (int i = 0; i < p->n_spots; i++) {
        if (p->spots[i].fixed)
            write_bundles(b, p, p->spots[i].fixed, p->spots[i].name);
        if (p->spots[i].avoided)
            buf_printf(b, "avoid %s\n", p->spots[i].name);
    }
}

static const struct spot *spot_named(const struct puzzle *p, const char *name)
{
    for (int i = 0; i < p->n_spots; i++)
        if (str_eq(p->spots[i].name, name))
            return &p->spots[i];
    return NULL;
}

static int cmp_place(const struct puzzle *p, const char *a, const char *b)
{
    const struct spot *x = spot_named(p, a), *y = spot_named(p, b);
    int r = p->by_rack ? str_cmp_natural(racks[x->rack], racks[y->rack]) : 0;
    return r ? r : str_cmp_natural(a, b);
}

// The placement is complete, within the free room, in order, and as good as the best one that brute force found.
static const char *check_placed(const struct puzzle *p, const struct placement *got)
{
    struct oracle o = ask_with_care(p);
    int taken[NODES] = {0};
    if (!o.found)
        return "placed, but there is no way";
    for (int i = 0; i < p->n; i++) {
        const struct spot *s = spot_named(p, got->nodes[i]);
        if (!s)
            return "a bundle without a node";
        taken[s - p->spots]++;
        if (i > 0 && cmp_place(p, got->nodes[i - 1], got->nodes[i]) > 0)
            return "not in the order of domains and nodes";
    }
    for (int i = 0; i < p->n_spots; i++)
        if (taken[i] > o.room[i])
            return "a node that is overcommitted, or should have been kept off";
    struct shares now;
    if (!judge(p, taken, &now))
        return "against the strategy";
    if (beats(p, o.best, now))
        return "not the best way";
    return NULL;
}

// The numbers after the last ';' add up: "2 of 5 nodes have room (1 full, 2 cordoned)".
static const char *check_message(const struct puzzle *p, const char *message)
{
    if (strlen(message) > 250)
        return "too long a message";
    const char *at = strrchr(message, ';');
    if (p->n_spots == 0)
        return at && str_eq(at, "; the cluster has no nodes") ? NULL : "no nodes, but the message does not say so";
    char *end;
    long with_room = at ? strtol(at + 1, &end, 10) : -1;
    if (with_room < 0 || !str_starts(end, " of "))
        return "a message of another form";
    long total = strtol(end + strlen(" of "), &end, 10);
    long sum = with_room;
    for (const char *c = strchr(end, '('); c; c = strchr(c, ','))
        sum += strtol(++c, NULL, 10);
    return total == p->n_spots && sum == total ? NULL : "counts that do not add up";
}

static const char *check(const struct puzzle *p, const struct placement *got)
{
    if (got->verdict == VERDICT_PLACED)
        return check_placed(p, got);
    if (ask(p, false, 0).found)
        return "not placed, but there is a way";
    if (ask(p, true, 0).found != (got->verdict == VERDICT_INSUFFICIENT))
        return "the wrong one of Insufficient and Infeasible";
    return check_message(p, got->message);
}

static void one_shape_is_exact(void **state)
{
    (void)state;
    int placed = 0, insufficient = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct rand r;
        rand_seed(&r, seed);
        struct puzzle p = make_puzzle(&r);
        struct buf text = BUF_INIT(1 << 16), shifted = BUF_INIT(1 << 16);
        write_puzzle(&text, &p, 0);
        write_puzzle(&shifted, &p, p.n_spots / 2);
        struct world *w = world_new(buf_str(&text)), *other = world_new(buf_str(&shifted));
        struct placement got;
        world_place(w, w->gangs[0], &got);
        const char *wrong = check(&p, &got);
        if (wrong)
            fail_msg("seed %llu: %s\n%s%s", (unsigned long long)seed, wrong, buf_str(&text),
                     world_answer(w, w->gangs[0]));
        if (!str_eq(world_answer(w, w->gangs[0]), world_answer(other, other->gangs[0])))
            fail_msg("seed %llu: depends on the order of the nodes\n%s", (unsigned long long)seed, buf_str(&text));
        placed += got.verdict == VERDICT_PLACED;
        insufficient += got.verdict == VERDICT_INSUFFICIENT;
        world_free(w);
        world_free(other);
        buf_done(&text);
        buf_done(&shifted);
    }
    // All kinds of cases have occurred.
    assert_in_range(placed, CASES / 3, CASES * 2 / 3);
    assert_in_range(insufficient, CASES / 20, CASES / 3);
}

// Several shapes: bundle b has kind[b], sorted.
struct mix {
    struct puzzle p; // its gpus, cpus and n belong to the kind that is being placed
    int gpus[3], cpus[3];
    int kind[BUNDLES];
    int n;
};

static struct mix make_mix(struct rand *r)
{
    struct mix m = {.p = make_puzzle(r), .n = 2 + up_to(r, 3)};
    for (int i = 0; i < m.p.n_spots; i++)
        m.p.spots[i].fixed = m.p.n_fixed = m.p.spots[i].avoided = 0;
    for (int k = 0; k < 3; k++) {
        m.gpus[k] = up_to(r, 2);
        m.cpus[k] = 1 + up_to(r, 2);
    }
    for (int b = 1; b < m.n; b++)
        m.kind[b] = MIN(m.kind[b - 1] + up_to(r, 1), 2);
    return m;
}

static void write_mix(struct buf *text, const struct mix *m)
{
    struct puzzle p = m->p;
    p.n = 0;
    for (int b = 0; b < m->n; b++) {
        bool first = b == 0 || m->kind[b] != m->kind[b - 1];
        p.gpus = m->gpus[m->kind[b]];
        p.cpus = m->cpus[m->kind[b]];
        p.n = first ? 1 : p.n + 1;
        if (b + 1 < m->n && m->kind[b + 1] == m->kind[b])
            continue;
        if (!text->len || !strstr(buf_str(text), "gang"))
            write_puzzle(text, &p, 0);
        else
            write_bundles(text, &p, p.n, NULL);
    }
}

// Puts bundle b on the node. Returns false if the node has no room for it.
static bool put(struct mix *m, int b, int spot, int *taken)
{
    struct spot *s = &m->p.spots[spot];
    int gpus = m->gpus[m->kind[b]], cpus = m->cpus[m->kind[b]];
    int slots = m->p.per_node && taken[spot] ? 0 : 1;
    if (!is_open(&m->p, s) || s->used_gpus + gpus > s->gpus || s->used_cpus + cpus > s->cpus ||
        s->used_slots + slots > s->slots)
        return false;
    s->used_gpus += gpus;
    s->used_cpus += cpus;
    s->used_slots += slots;
    taken[spot]++;
    return true;
}

static void take_back(struct mix *m, int b, int spot, int *taken)
{
    struct spot *s = &m->p.spots[spot];
    s->used_gpus -= m->gpus[m->kind[b]];
    s->used_cpus -= m->cpus[m->kind[b]];
    taken[spot]--;
    s->used_slots -= m->p.per_node && taken[spot] ? 0 : 1;
}

static bool is_possible(struct mix *m, int b, int *taken)
{
    struct shares unused;
    if (b == m->n)
        return judge(&m->p, taken, &unused);
    for (int i = 0; i < m->p.n_spots; i++) {
        if (!put(m, b, i, taken))
            continue;
        bool found = is_possible(m, b + 1, taken);
        take_back(m, b, i, taken);
        if (found)
            return true;
    }
    return false;
}

static const char *check_mix(struct mix m, const struct placement *got)
{
    int taken[NODES] = {0};
    struct shares unused;
    for (int b = 0; b < m.n; b++) {
        const struct spot *s = spot_named(&m.p, got->nodes[b]);
        if (!s || !put(&m, b, (int)(s - m.p.spots), taken))
            return "a bundle where there is no room for it";
        if (b > 0 && m.kind[b] == m.kind[b - 1] && cmp_place(&m.p, got->nodes[b - 1], got->nodes[b]) > 0)
            return "not in the order of domains and nodes";
    }
    return judge(&m.p, taken, &unused) ? NULL : "against the strategy";
}

static void several_shapes_are_never_wrong_and_seldom_missed(void **state)
{
    (void)state;
    int possible = 0, missed = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct rand r;
        rand_seed(&r, seed);
        struct mix m = make_mix(&r);
        struct buf text = BUF_INIT(1 << 16);
        write_mix(&text, &m);
        struct world *w = world_new(buf_str(&text));
        struct placement got;
        world_place(w, w->gangs[0], &got);
        const char *wrong = got.verdict == VERDICT_PLACED ? check_mix(m, &got) : check_message(&m.p, got.message);
        if (wrong)
            fail_msg("seed %llu: %s\n%s%s", (unsigned long long)seed, wrong, buf_str(&text),
                     world_answer(w, w->gangs[0]));
        if (is_possible(&m, 0, (int[NODES]){0})) {
            possible++;
            missed += got.verdict != VERDICT_PLACED;
        }
        world_free(w);
        buf_done(&text);
    }
    assert_in_range(possible, CASES / 5, CASES * 2 / 3);
    assert_in_range(missed * 100, 0, possible); // one in a hundred at most
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_shape_is_exact),
        cmocka_unit_test(several_shapes_are_never_wrong_and_seldom_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
