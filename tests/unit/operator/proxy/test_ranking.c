// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/ranking.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "operator/proxy/proxy_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

enum { WORLD = 100, LANES = 3, GONE_MAX = 64 };

static struct stats_common common;

static struct group *group_with(uint32_t world)
{
    struct group *g = group_new("uid", "web", "llama", &common);
    group_update(g, &(struct group_facts){.uid = "uid", .ns = "web", .name = "llama", .world = world, .attempt = 1});
    return g;
}

static void joins(struct group *g, uint32_t rank, struct rand *r)
{
    struct member *m;
    struct err err = ERR_INIT;
    const char *hello = "{\"methods\":[]}";
    assert_int_equal(member_new(&(struct member_identity){.group_uid = "uid", .attempt = 1, .rank = rank}, hello,
                                strlen(hello), &m, &err),
                     0);
    m->n_lanes = 1 + rand_below(r, LANES); // classes with different lanes
    for (size_t i = 0; i < m->n_lanes; i++)
        m->lanes[i].limit = 1 + (uint32_t)rand_below(r, 3);
    group_join(g, m);
}

// Members that have left. Their calls end later.
static struct {
    struct member *at[GONE_MAX];
    size_t n;
} gone;

static void leaves(struct group *g, uint32_t rank)
{
    struct member *m = g->ranks[rank].member;
    group_leave(m);
    if (m->n_pending && gone.n < GONE_MAX) {
        gone.at[gone.n++] = m;
        return;
    }
    m->n_pending = 0;
    member_free(m);
}

static void is_called(struct group *g, struct member *m, uint8_t lane)
{
    m->n_pending++;
    member_lane(m, lane)->n_pending++;
    ranking_changed(g->ranking, m);
}

static void answers(struct group *g, struct member *m, uint8_t lane)
{
    if (!member_lane(m, lane)->n_pending)
        return;
    m->n_pending--;
    member_lane(m, lane)->n_pending--;
    ranking_changed(g->ranking, m);
}

// A call of a member that has left ends.
static void ends(struct group *g, struct rand *r)
{
    if (!gone.n)
        return;
    size_t i = (size_t)rand_below(r, gone.n);
    struct member *m = gone.at[i];
    m->n_pending--;
    ranking_changed(g->ranking, m);
    if (!m->n_pending) {
        member_free(m);
        gone.at[i] = gone.at[--gone.n];
    }
}

static void all_end(struct group *g, struct rand *r)
{
    while (gone.n)
        ends(g, r);
}

// Looks at all ranks, one after the other.
static const struct member *slow_least(const struct group *g, uint8_t lane, uint32_t from)
{
    const struct member *best = NULL;
    for (uint32_t i = 0; i < g->world; i++) {
        struct member *m = g->ranks[(from + i) % g->world].member;
        const struct member_lane *l = m ? member_lane(m, lane) : NULL;
        if (l && l->n_pending < l->limit && (!best || m->n_pending < best->n_pending))
            best = m;
    }
    return best;
}

static void step(struct group *g, struct rand *r, unsigned comings)
{
    uint32_t rank = (uint32_t)rand_below(r, g->world);
    uint8_t lane = rand_below(r, 8) ? (uint8_t)rand_below(r, LANES) : (uint8_t)MEMBER_LANE_NONE;
    struct member *m = g->ranks[rank].member;
    if (rand_below(r, 100) < comings && !m)
        joins(g, rank, r);
    else if (rand_below(r, 100) < comings && m)
        leaves(g, rank);
    else if (m && rand_below(r, 2))
        is_called(g, m, lane);
    else if (m)
        answers(g, m, lane);
    if (!rand_below(r, 4))
        ends(g, r);
}

static void the_least_busy_is_the_one_that_a_look_at_all_ranks_finds(void **state)
{
    static const uint32_t worlds[] = {1, 2, 3, 7, 64, WORLD};
    struct rand r;
    (void)state;
    rand_seed(&r, 23);
    for (size_t k = 0; k < ARRAY_LEN(worlds); k++) {
        struct group *g = group_with(worlds[k]);
        for (int i = 0; i < 20000; i++) {
            step(g, &r, i % 1000 < 200 ? 50 : 1); // first many members come and go, then few
            if (rand_below(&r, 2))
                continue; // several changes before the next question
            uint8_t lane = rand_below(&r, 8) ? (uint8_t)rand_below(&r, LANES) : (uint8_t)MEMBER_LANE_NONE;
            uint32_t from = (uint32_t)rand_below(&r, g->world);
            assert_ptr_equal(ranking_least(g->ranking, lane, from), slow_least(g, lane, from));
        }
        for (uint32_t rank = 0; rank < g->world; rank++)
            if (g->ranks[rank].member)
                leaves(g, rank);
        all_end(g, &r);
        group_free(g);
    }
}

static void the_tasks_of_idle_ranks_go_round(void **state)
{
    struct rand r;
    (void)state;
    rand_seed(&r, 1);
    struct group *g = group_with(5);
    assert_null(ranking_least(g->ranking, 0, 3));
    for (uint32_t rank = 0; rank < 5; rank++)
        joins(g, rank, &r);
    for (uint32_t i = 0; i < 5; i++) {
        const struct member *m = ranking_least(g->ranking, 0, (3 + i) % 5);
        assert_int_equal(m->rank, (3 + i) % 5);
        is_called(g, g->ranks[m->rank].member, 0);
    }
    for (uint32_t rank = 0; rank < 5; rank++)
        leaves(g, rank);
    all_end(g, &r);
    group_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_busy_is_the_one_that_a_look_at_all_ranks_finds),
        cmocka_unit_test(the_tasks_of_idle_ranks_go_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
