// SPDX-License-Identifier: Apache-2.0
// Communicators of 2 to 8 processes: what each collective gives, and what happens where a member dies, stands still, or
// does not call. Limits are ten minutes where something else must end the wait.
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

enum { COUNT = 1000, SHORT_LIMIT_MS = 300 };

// Values

static int reduces(const struct team_member *m, cadre_comm *c)
{
    int n = m->n;
    float x[COUNT], y[COUNT];
    int64_t a[3] = {m->index, -m->index, 5}, b[3];
    uint16_t half[2] = {0x3f80, 0x4000}; // bf16: 1 and 2
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i + m->index);
    TEAM_CHECK(cadre_all_reduce(c, "F32", x, y, COUNT, CADRE_SUM) == CADRE_OK);
    for (int i = 0; i < COUNT; i++)
        TEAM_CHECK(y[i] == (float)(i * n + n * (n - 1) / 2));
    TEAM_CHECK(cadre_all_reduce(c, "F32", x, x, COUNT, CADRE_MEAN) == CADRE_OK);
    TEAM_CHECK(x[7] == 7 + (float)(n - 1) / 2);
    TEAM_CHECK(cadre_all_reduce(c, "I64", a, b, 3, CADRE_MIN) == CADRE_OK);
    TEAM_CHECK(b[0] == 0 && b[1] == -(n - 1) && b[2] == 5);
    TEAM_CHECK(cadre_all_reduce(c, "BF16", half, half, 2, CADRE_MAX) == CADRE_OK);
    TEAM_CHECK(half[0] == 0x3f80 && half[1] == 0x4000);
    return 0;
}

static int moves(const struct team_member *m, cadre_comm *c)
{
    int n = m->n, next = (m->index + 1) % n, before = (m->index + n - 1) % n;
    int32_t one[2] = {m->index, m->index * 10}, all[2 * TEAM_MAX], swapped[2 * TEAM_MAX], got[2] = {0};
    uint8_t text[6] = {0};
    if (m->index == n - 1)
        memcpy(text, "hello", 6);
    TEAM_CHECK(cadre_broadcast(c, "U8", text, 6, n - 1) == CADRE_OK);
    TEAM_CHECK(strcmp((char *)text, "hello") == 0);
    TEAM_CHECK(cadre_all_gather(c, "I32", one, all, 2) == CADRE_OK);
    for (int i = 0; i < n; i++)
        TEAM_CHECK(all[2 * i] == i && all[2 * i + 1] == i * 10);
    for (int i = 0; i < 2 * n; i++)
        all[i] = m->index * 100 + i;
    TEAM_CHECK(cadre_all_to_all(c, "I32", all, swapped, 2) == CADRE_OK);
    for (int i = 0; i < n; i++)
        TEAM_CHECK(swapped[2 * i] == i * 100 + 2 * m->index && swapped[2 * i + 1] == i * 100 + 2 * m->index + 1);
    TEAM_CHECK(cadre_reduce_scatter(c, "I32", all, got, 2, CADRE_SUM) == CADRE_OK);
    TEAM_CHECK(got[0] == n * (n - 1) / 2 * 100 + n * 2 * m->index);
    TEAM_CHECK(got[1] == got[0] + n);
    if (m->index % 2) {
        TEAM_CHECK(cadre_recv(c, "I32", got, 2, before) == CADRE_OK);
        TEAM_CHECK(cadre_send(c, "I32", one, 2, next) == CADRE_OK);
    } else {
        TEAM_CHECK(cadre_send(c, "I32", one, 2, next) == CADRE_OK);
        TEAM_CHECK(cadre_recv(c, "I32", got, 2, before) == CADRE_OK);
    }
    TEAM_CHECK(got[0] == before && got[1] == before * 10);
    TEAM_CHECK(cadre_barrier(c) == CADRE_OK);
    return 0;
}

static int refuses(const struct team_member *m, cadre_comm *c)
{
    float x[2] = {0};
    TEAM_CHECK(cadre_all_reduce(c, "F33", x, x, 2, CADRE_SUM) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(strstr(cadre_comm_error(c), "this type does not exist"));
    TEAM_CHECK(cadre_all_reduce(c, "F4", x, x, 2, CADRE_SUM) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_all_reduce(c, "F8_E4M3", x, x, 2, CADRE_SUM) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_all_reduce(c, "I32", x, x, 2, CADRE_MEAN) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_all_reduce(c, "F32", x, x, 2, (cadre_reduction)9) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_all_reduce(c, "F32", x, x, SIZE_MAX / 2, CADRE_SUM) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_broadcast(c, "F32", x, 2, m->n) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_send(c, "F32", x, 2, m->index) == CADRE_INVALID_ARGUMENT);
    TEAM_CHECK(cadre_all_reduce(c, "F32", x, x, 0, CADRE_SUM) == CADRE_OK);
    TEAM_CHECK(cadre_all_reduce(c, "F32", x, x, 2, CADRE_SUM) == CADRE_OK);
    TEAM_CHECK(!*cadre_comm_error(c));
    return 0;
}

static int use_all(const struct team_member *m, void *ctx)
{
    struct err err = ERR_INIT;
    cadre_comm *c = team_join(m, &err);
    (void)ctx;
    TEAM_CHECK(c);
    TEAM_CHECK(cadre_comm_rank(c) == m->index && cadre_comm_size(c) == m->n);
    int r = reduces(m, c) || moves(m, c) || refuses(m, c);
    cadre_comm_free(c);
    return r;
}

static void collectives_give_what_they_should(void **state)
{
    (void)state;
    static const int sizes[] = {2, 3, 4, 8};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct team t;
        team_start(&t, sizes[i], TEAM_LIMIT_MS, use_all, NULL);
        for (int k = 0; k < t.n; k++)
            assert_int_equal(team_wait(&t, k), 0);
    }
}

// Parts are cut into pieces from 64 KiB on, and have other lengths where the count does not divide.
static int use_long(const struct team_member *m, void *ctx)
{
    enum { LONG = 1000003 };
    struct err err = ERR_INIT;
    cadre_comm *c = team_join(m, &err);
    int32_t *x = xcalloc(LONG, sizeof *x), *all = xcalloc((size_t)m->n * LONG, sizeof *all);
    (void)ctx;
    TEAM_CHECK(c);
    for (int i = 0; i < LONG; i++)
        x[i] = i + m->index;
    TEAM_CHECK(cadre_all_gather(c, "I32", x, all, LONG) == CADRE_OK);
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < LONG; k++)
            TEAM_CHECK(all[i * LONG + k] == k + i);
    TEAM_CHECK(cadre_all_reduce(c, "I32", x, x, LONG, CADRE_SUM) == CADRE_OK);
    for (int i = 0; i < LONG; i++)
        TEAM_CHECK(x[i] == i * m->n + m->n * (m->n - 1) / 2);
    TEAM_CHECK(cadre_reduce_scatter(c, "I32", all, x, LONG, CADRE_MAX) == CADRE_OK);
    for (int i = 0; i < LONG; i++)
        TEAM_CHECK(x[i] == i + m->index);
    free(x);
    free(all);
    cadre_comm_free(c);
    return 0;
}

static void long_ones_too(void **state)
{
    (void)state;
    struct team t;
    team_start(&t, 3, TEAM_LIMIT_MS, use_long, NULL);
    for (int k = 0; k < t.n; k++)
        assert_int_equal(team_wait(&t, k), 0);
}

// The first member is gone as soon as it has sent.
static int part_early(const struct team_member *m, void *ctx)
{
    enum { LONG = 8 << 20 };
    struct err err = ERR_INIT;
    cadre_comm *c = team_join(m, &err);
    char *data = xcalloc(LONG, 1);
    (void)ctx;
    TEAM_CHECK(c);
    if (m->index == 0) {
        memset(data, 'x', LONG);
        TEAM_CHECK(cadre_send(c, "U8", data, LONG, 1) == CADRE_OK);
    } else {
        if (cadre_recv(c, "U8", data, LONG, 0) != CADRE_OK)
            fprintf(stderr, "%s\n", cadre_comm_error(c));
        TEAM_CHECK(data[LONG - 1] == 'x');
    }
    cadre_comm_free(c);
    free(data);
    return 0;
}

static void what_was_sent_arrives_though_its_sender_has_gone(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct team t;
        team_start(&t, 2, TEAM_LIMIT_MS, part_early, NULL);
        assert_int_equal(team_wait(&t, 0), 0);
        assert_int_equal(team_wait(&t, 1), 0);
    }
}

static int reduce_alone(const struct team_member *m, void *ctx)
{
    (void)ctx;
    struct err err = ERR_INIT;
    float x[2] = {1, 2}, y[2] = {0, 0};
    cadre_comm *c = team_join(m, &err);
    bool done = c && cadre_all_reduce(c, "F32", x, y, 2, CADRE_MEAN) == CADRE_OK && y[1] == 2 &&
                cadre_barrier(c) == CADRE_OK && cadre_comm_wait(c) == CADRE_OK;
    cadre_comm_free(c);
    return done ? 0 : 1;
}

static void one_member_needs_nobody(void **state)
{
    struct team t;
    (void)state;
    team_start(&t, 1, TEAM_LIMIT_MS, reduce_alone, NULL);
    assert_int_equal(team_wait(&t, 0), 0);
}

// Trouble

// The connections cannot store all bytes that are sent, so the sender waits for the receiver.
static cadre_result call(cadre_comm *c, enum team_kind kind, int victim)
{
    enum { MUCH = 4 << 20 };
    static float in[MUCH], out[TEAM_MAX * COUNT];
    return team_call(c, kind, in, out, kind == TEAM_SEND ? MUCH : COUNT, victim);
}

struct trouble {
    enum team_kind kind;
    int victim;
};

// The victim calls nothing and waits for its end; the others say why they have failed.
static int suffer(const struct team_member *m, void *ctx)
{
    const struct trouble *t = ctx;
    struct err err = ERR_INIT;
    cadre_comm *c = team_join(m, &err);
    TEAM_CHECK(c);
    TEAM_CHECK(cadre_barrier(c) == CADRE_OK);
    team_say(m, "ready");
    if (m->index == t->victim)
        for (;;)
            pause();
    TEAM_CHECK(call(c, t->kind, t->victim) == CADRE_ERROR);
    team_say(m, cadre_comm_error(c));
    TEAM_CHECK(cadre_barrier(c) == CADRE_ERROR); // and so does all that follows
    cadre_comm_free(c);
    return 0;
}

// False, and nothing of it is left: one is late that is not the victim.
static bool is_hurt(struct team *t, const struct trouble *trouble, int signo, const char *want, char said[TEAM_LINE])
{
    bool ready = team_all_say(t, -1, "ready", said);
    if (ready && signo)
        kill(t->pids[trouble->victim], signo);
    bool hurt = ready && team_all_say(t, trouble->victim, want, said);
    if (!hurt)
        team_kill(t);
    return hurt;
}

// On a busy machine the limit is as long as the machine needs.
static void hurt(struct trouble *trouble, int n, int64_t limit_ms, int signo, const char *want)
{
    struct team t;
    char said[TEAM_LINE];
    for (team_start(&t, n, limit_ms, suffer, trouble); !is_hurt(&t, trouble, signo, want, said);
         team_start(&t, n, limit_ms, suffer, trouble)) {
        limit_ms *= 2;
        if (limit_ms >= TEAM_LIMIT_MS)
            fail_msg("%s, victim %d, one says: %s", team_kind_name(trouble->kind), trouble->victim, said);
    }
    for (int i = 0; i < n; i++)
        if (i != trouble->victim)
            assert_int_equal(team_wait(&t, i), 0);
    kill(t.pids[trouble->victim], SIGKILL);
    assert_int_equal(team_wait(&t, trouble->victim), -SIGKILL);
}

static void a_member_that_dies_fails_the_others_in_every_collective(void **state)
{
    (void)state;
    for (enum team_kind kind = 0; kind < TEAM_KINDS; kind++) {
        struct trouble last = {kind, 3}, first = {kind, 0};
        hurt(&last, 4, TEAM_LIMIT_MS, SIGKILL, "rank 13 was lost");
        hurt(&first, 4, TEAM_LIMIT_MS, SIGKILL, "rank 10 was lost");
    }
}

static const char *waits_for_12(enum team_kind kind)
{
    switch (kind) {
    case TEAM_RECV:
        return "ms to receive from rank 12, which has not called cadre_send(), is stopped, or cannot be reached";
    case TEAM_SEND:
        return "ms to send to rank 12, which has not called cadre_recv(), is stopped, or cannot be reached";
    default:
        return "rank 12 does not answer";
    }
}

static void a_member_that_stands_still_is_named_at_the_limit(void **state)
{
    (void)state;
    for (enum team_kind kind = 0; kind < TEAM_KINDS; kind++) {
        struct trouble t = {kind, 2};
        hurt(&t, 4, SHORT_LIMIT_MS, SIGSTOP, waits_for_12(kind));
    }
}

static void a_member_that_does_not_call_is_named_at_the_limit(void **state)
{
    (void)state;
    static const enum team_kind kinds[] = {TEAM_ALL_REDUCE, TEAM_ALL_GATHER,     TEAM_ALL_TO_ALL,
                                           TEAM_BROADCAST,  TEAM_REDUCE_SCATTER, TEAM_BARRIER};
    for (int i = 0; i < (int)ARRAY_LEN(kinds); i++) {
        struct trouble t = {kinds[i], i % 3};
        char want[80];
        snprintf(want, sizeof want, "collective 2 waited too long; rank %d has not called it", 10 + t.victim);
        hurt(&t, 3, SHORT_LIMIT_MS, 0, want);
    }
    for (enum team_kind kind = TEAM_SEND; kind <= TEAM_RECV; kind++) {
        struct trouble t = {kind, 2};
        hurt(&t, 3, SHORT_LIMIT_MS, 0, waits_for_12(kind));
    }
}

// Making

static int join_but_one(const struct team_member *m, void *ctx)
{
    const int *victim = ctx;
    struct err err = ERR_INIT;
    if (m->index == *victim) {
        team_say(m, "here");
        pause();
    }
    TEAM_CHECK(!team_join(m, &err));
    team_say(m, err.msg);
    return 0;
}

static void who_does_not_come_is_named(void **state)
{
    (void)state;
    for (int victim = 0; victim < 3; victim += 2) {
        struct team t;
        char said[TEAM_LINE], want[32];
        int64_t limit_ms = SHORT_LIMIT_MS;
        snprintf(want, sizeof want, "rank %d did not arrive", 10 + victim);
        for (team_start(&t, 3, limit_ms, join_but_one, &victim); !team_all_say(&t, victim, want, said);
             team_start(&t, 3, limit_ms, join_but_one, &victim)) {
            team_kill(&t);
            limit_ms *= 2;
            if (limit_ms >= TEAM_LIMIT_MS)
                fail_msg("victim %d, one says: %s", victim, said);
        }
        for (int i = 0; i < 3; i++)
            if (i != victim)
                assert_int_equal(team_wait(&t, i), 0);
        kill(t.pids[victim], SIGKILL);
        (void)team_wait(&t, victim);
    }
}

static void a_back_end_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    const char *const names[] = {"rank 0", "rank 1"};
    int links[] = {-1, -1};
    cadre_comm *c;
    struct err err = ERR_INIT;
    const struct comm_config config = {.backend = "smoke", .names = names, .n = 2, .links = links, .limit_ms = 1};
    assert_int_equal(comm_new(&config, &c, &err), ERR_INVALID);
    assert_non_null(strstr(err.msg, "no back end 'smoke'"));
    assert_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_give_what_they_should),
        cmocka_unit_test(long_ones_too),
        cmocka_unit_test(what_was_sent_arrives_though_its_sender_has_gone),
        cmocka_unit_test(one_member_needs_nobody),
        cmocka_unit_test(a_member_that_dies_fails_the_others_in_every_collective),
        cmocka_unit_test(a_member_that_stands_still_is_named_at_the_limit),
        cmocka_unit_test(a_member_that_does_not_call_is_named_at_the_limit),
        cmocka_unit_test(who_does_not_come_is_named),
        cmocka_unit_test(a_back_end_that_is_not_there_is_an_error),
    };
    char folder[64];
    team_begin(folder);
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    folder_free(folder);
    return r;
}
