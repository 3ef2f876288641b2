// SPDX-License-Identifier: Apache-2.0
// Communicators in debug mode: what members are about to do is compared before anything is sent. Over gloo, or over the
// back end that CADRE_TEST_BACKEND names.
#include "tests/unit/support/team.h"

#include "common/base/mem.h"
#include "tests/unit/support/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMBERS = 3, ODD = 1, SHORT_LIMIT_MS = 3000 };

enum difference { NONE, COUNT, TYPE, REDUCTION, ROOT, KIND, NOTHING, NO_CALL, DIES };

struct plan {
    enum difference difference;
    bool all_debug;
};

static cadre_result call(cadre_comm *c, enum difference d)
{
    float x[8] = {1, 2, 3, 4};
    switch (d) {
    case COUNT:
        return cadre_all_reduce(c, "F32", x, x, 3, CADRE_SUM);
    case TYPE:
        return cadre_all_reduce(c, "I32", x, x, 4, CADRE_SUM);
    case REDUCTION:
        return cadre_all_reduce(c, "F32", x, x, 4, CADRE_MEAN);
    case ROOT:
        return cadre_broadcast(c, "F32", x, 4, 2);
    case KIND:
        return cadre_barrier(c);
    case NOTHING:
        return cadre_all_reduce(c, "F32", x, x, 0, CADRE_SUM);
    default:
        return cadre_all_reduce(c, "F32", x, x, 4, CADRE_SUM);
    }
}

static cadre_result call_usual(cadre_comm *c, enum difference d)
{
    float x[8] = {1, 2, 3, 4};
    return d == ROOT ? cadre_broadcast(c, "F32", x, 4, 0) : call(c, NONE);
}

// A hundred go well, then one member does something else.
static int differ(const struct team_member *m, void *ctx)
{
    const struct plan *p = ctx;
    struct err err = ERR_INIT;
    struct team_member me = *m;
    me.debug = p->all_debug || m->index == ODD;
    cadre_comm *c = team_join(&me, &err);
    if (!c) {
        team_say(m, err.msg);
        return 0;
    }
    float x[4] = {1, 2, 3, 4};
    cadre_result r = CADRE_OK;
    for (int i = 0; i < 100 && r == CADRE_OK; i++)
        r = cadre_all_reduce(c, "F32", x, x, 4, CADRE_MEAN);
    if (m->index == ODD && p->difference == NO_CALL) {
        team_say(m, "silent");
        pause();
    }
    if (m->index == ODD && p->difference == DIES)
        raise(SIGKILL);
    if (r == CADRE_OK) // else a member has died that was done with the last one before others
        r = m->index == ODD ? call(c, p->difference) : call_usual(c, p->difference);
    team_say(m, r == CADRE_OK ? "done" : cadre_comm_error(c));
    cadre_comm_free(c);
    return 0;
}

static void run(enum difference d, bool all_debug, int64_t limit_ms, const char *want)
{
    struct plan p = {d, all_debug};
    struct team t;
    char said[TEAM_LINE];
    bool lost = d == NO_CALL || d == DIES;
    for (team_start(&t, MEMBERS, limit_ms, differ, &p); !team_all_say(&t, lost ? ODD : -1, want, said);
         team_start(&t, MEMBERS, limit_ms, differ, &p)) {
        team_kill(&t);
        limit_ms *= 2;
        if (limit_ms >= TEAM_LIMIT_MS)
            fail_msg("difference %d: one says: %s", (int)d, said);
    }
    for (int i = 0; i < MEMBERS; i++)
        if (!lost || i != ODD)
            assert_int_equal(team_wait(&t, i), 0);
    if (lost) {
        kill(t.pids[ODD], SIGKILL);
        assert_int_equal(team_wait(&t, ODD), -SIGKILL);
    }
}

static void what_is_the_same_runs(void **state)
{
    (void)state;
    run(NONE, true, TEAM_LIMIT_MS, "done");
}

static void what_differs_is_an_error_that_names_the_ranks(void **state)
{
    (void)state;
#define OTHERS "collective 101 differs: rank 10, rank 12: all_reduce of 4 F32 with sum; rank 11: "
    run(COUNT, true, TEAM_LIMIT_MS, OTHERS "all_reduce of 3 F32 with sum");
    run(TYPE, true, TEAM_LIMIT_MS, OTHERS "all_reduce of 4 I32 with sum");
    run(REDUCTION, true, TEAM_LIMIT_MS, OTHERS "all_reduce of 4 F32 with mean");
    run(KIND, true, TEAM_LIMIT_MS, OTHERS "barrier of 1 U8");
    run(NOTHING, true, TEAM_LIMIT_MS, OTHERS "all_reduce of 0 F32 with sum");
    run(ROOT, true, TEAM_LIMIT_MS,
        "rank 10, rank 12: broadcast of 4 F32 from rank 10; rank 11: broadcast of 4 F32 from rank 12");
}

static void who_does_not_call_is_named_at_the_limit(void **state)
{
    (void)state;
    run(NO_CALL, true, SHORT_LIMIT_MS, "collective 101 waited too long; rank 11 has not called it");
}

static void who_dies_is_named_at_once(void **state)
{
    (void)state;
    run(DIES, true, TEAM_LIMIT_MS, "rank 11 was lost");
}

static void all_members_must_be_in_the_same_mode(void **state)
{
    (void)state;
    run(NONE, false, TEAM_LIMIT_MS, "rank 10 and rank 11 differ in CADRE_COLLECTIVE_DEBUG");
}

// Pairs

struct pair {
    int from, to;
    const char *dtype; // of the receiver; the sender has 4 F32
    size_t n;
    bool waits; // the sender: for more than connections hold
};

static cadre_result call_pair(const struct team_member *m, cadre_comm *c, const struct pair *p)
{
    static char much[16 << 20];
    float x[8] = {1, 2, 3, 4};
    if (m->index == p->from && p->waits)
        return cadre_send(c, "U8", much, sizeof much, p->to);
    if (m->index == p->from)
        return cadre_send(c, "F32", x, 4, p->to);
    return m->index == p->to ? cadre_recv(c, p->dtype, x, p->n, p->from) : CADRE_OK;
}

// Two go well, then the two ends differ. If that call does not tell a member, its next call does.
static int differ_in_a_pair(const struct team_member *m, void *ctx)
{
    const struct pair *p = ctx, same = {p->from, p->to, "F32", 4, false};
    struct err err = ERR_INIT;
    struct team_member me = *m;
    me.debug = true;
    cadre_comm *c = team_join(&me, &err);
    if (!c || call_pair(m, c, &same) != CADRE_OK || call_pair(m, c, &same) != CADRE_OK)
        return 1;
    cadre_result r = call_pair(m, c, p);
    bool told = r == CADRE_ERROR || (m->index != p->to && !(m->index == p->from && p->waits));
    if (r == CADRE_OK)
        r = cadre_barrier(c);
    team_say(m, r == CADRE_OK ? "done" : cadre_comm_error(c));
    cadre_comm_free(c);
    return told ? 0 : 2;
}

static void run_pair(const struct pair *p, const char *sends, const char *receives)
{
    struct team t;
    char line[1024], want[256];
    struct pair plan = *p;
    snprintf(want, sizeof want, "what rank 1%d sends to rank 1%d differs: rank 1%d: send of %s; rank 1%d: recv of %s",
             p->from, p->to, p->from, sends, p->to, receives);
    team_start(&t, MEMBERS, TEAM_LIMIT_MS, differ_in_a_pair, &plan);
    for (int i = 0; i < MEMBERS; i++) {
        team_hear(&t, i, line, sizeof line);
        if (!strstr(line, want))
            fail_msg("from %d to %d: member %d says: %s", p->from, p->to, i, line);
        assert_int_equal(team_wait(&t, i), 0);
    }
}

static void a_pair_that_differs_is_an_error_that_names_both_ends(void **state)
{
    (void)state;
    for (int from = 0; from < MEMBERS; from++)
        for (int to = 0; to < MEMBERS; to++)
            if (from != to)
                run_pair(&(struct pair){from, to, "F32", 3, false}, "4 F32", "3 F32");
    run_pair(&(struct pair){1, 2, "I32", 4, false}, "4 F32", "4 I32");
    run_pair(&(struct pair){0, 2, "F4", 32, false}, "4 F32", "32 F4"); // as many bytes
    run_pair(&(struct pair){2, 0, "F32", 0, false}, "4 F32", "0 F32");
    run_pair(&(struct pair){0, 1, "U8", 4, true}, "16777216 U8", "4 U8");
}

static int join_in_debug_mode(const struct team_member *m, cadre_comm **ret)
{
    struct err err = ERR_INIT;
    struct team_member me = *m;
    me.debug = true;
    *ret = team_join(&me, &err);
    return *ret ? 0 : 1;
}

static bool sends(cadre_comm *c, int32_t value, int to)
{
    return cadre_send(c, "I32", &value, 1, to) == CADRE_OK && cadre_send(c, "I32", NULL, 0, to) == CADRE_OK;
}

static bool receives(cadre_comm *c, int32_t want, int from)
{
    int32_t got = -1;
    return cadre_recv(c, "I32", &got, 1, from) == CADRE_OK && cadre_recv(c, "I32", NULL, 0, from) == CADRE_OK &&
           got == want;
}

// The same as without the debug mode: with the back end nccl, the sender of a few bytes does not wait for the receiver.
static int send_first(const struct team_member *m, void *ctx)
{
    cadre_comm *c;
    int r = join_in_debug_mode(m, &c), next = (m->index + 1) % m->n, before = (m->index + m->n - 1) % m->n;
    bool first = m->index == 0 || strcmp(team_backend, "nccl") == 0;
    (void)ctx;
    for (int32_t i = 0; r == 0 && i < 20; i++)
        if (first ? !sends(c, m->index + i, next) || !receives(c, before + i, before)
                  : !receives(c, before + i, before) || !sends(c, m->index + i, next))
            r = 1;
    if (r)
        fprintf(stderr, "member %d: %s\n", m->index, cadre_comm_error(c));
    cadre_comm_free(c);
    return r;
}

static void members_may_send_before_they_receive(void **state)
{
    struct team t;
    (void)state;
    team_start(&t, MEMBERS, TEAM_LIMIT_MS, send_first, NULL);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(team_wait(&t, i), 0);
}

// The first member passes on what the others say of their pairs. The others go on without comparing.
static int part_early(const struct team_member *m, void *ctx)
{
    cadre_comm *c;
    int r = join_in_debug_mode(m, &c);
    (void)ctx;
    for (int32_t i = 0, got = -1; r == 0 && m->index && i < 200; i++, got = -1)
        if (m->index == 1 ? cadre_send(c, "I32", &i, 1, 2) != CADRE_OK
                          : cadre_recv(c, "I32", &got, 1, 1) != CADRE_OK || got != i)
            r = 1;
    if (r)
        fprintf(stderr, "member %d: %s\n", m->index, cadre_comm_error(c));
    if (m->index == 1) // what it has sent is on its way
        (void)cadre_recv(c, "U8", &(char){0}, 1, 2);
    else if (m->index == 2)
        (void)cadre_send(c, "U8", &(char){0}, 1, 1);
    cadre_comm_free(c);
    return r;
}

static void the_first_member_may_go_before_the_others(void **state)
{
    struct team t;
    (void)state;
    for (int round = 0; round < 5; round++) {
        team_start(&t, MEMBERS, TEAM_LIMIT_MS, part_early, NULL);
        for (int i = 0; i < MEMBERS; i++)
            assert_int_equal(team_wait(&t, i), 0);
    }
}

// The others call nothing.
static int receive_in_vain(const struct team_member *m, void *ctx)
{
    float x[4];
    cadre_comm *c;
    (void)ctx;
    if (join_in_debug_mode(m, &c))
        return 1;
    if (m->index != 2)
        for (;;)
            pause();
    team_say(m, cadre_recv(c, "F32", x, 4, ODD) == CADRE_OK ? "done" : cadre_comm_error(c));
    cadre_comm_free(c);
    return 0;
}

static void who_does_not_send_is_named_at_the_limit(void **state)
{
    struct team t;
    char line[TEAM_LINE], want[TEAM_LINE];
    int limit_ms = SHORT_LIMIT_MS / 2;
    (void)state;
    do { // until all join within the limit
        limit_ms *= 2;
        team_start(&t, MEMBERS, limit_ms, receive_in_vain, NULL);
        team_hear(&t, 2, line, sizeof line);
        if (!line[0])
            team_kill(&t);
    } while (!line[0] && limit_ms < TEAM_LIMIT_MS);
    snprintf(want, sizeof want,
             "recv: rank 12 waited %d ms to receive from rank 11, which has not called cadre_send(), is stopped, or "
             "cannot be reached; or rank 10 is stopped, which passes on what the two say in debug mode",
             limit_ms);
    assert_string_equal(line, want);
    assert_int_equal(team_wait(&t, 2), 0);
    for (int i = 0; i < 2; i++) {
        kill(t.pids[i], SIGKILL);
        assert_int_equal(team_wait(&t, i), -SIGKILL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_the_same_runs),
        cmocka_unit_test(what_differs_is_an_error_that_names_the_ranks),
        cmocka_unit_test(who_does_not_call_is_named_at_the_limit),
        cmocka_unit_test(who_dies_is_named_at_once),
        cmocka_unit_test(all_members_must_be_in_the_same_mode),
        cmocka_unit_test(a_pair_that_differs_is_an_error_that_names_both_ends),
        cmocka_unit_test(members_may_send_before_they_receive),
        cmocka_unit_test(the_first_member_may_go_before_the_others),
        cmocka_unit_test(who_does_not_send_is_named_at_the_limit),
    };
    char folder[64];
    team_begin(folder);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
