// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/reach.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { S = 1000, NOW = 1000 * S, LIMIT = 60 * S };

static int64_t left;

static enum reach_verdict ask(const struct reach *r, size_t silent, int64_t since_ms)
{
    left = -1;
    return reach_verdict(r, silent, since_ms, LIMIT, NOW, &left);
}

// Ten agents, and one of them is connected.
static struct reach with(const struct connected_peer *w)
{
    return (struct reach){.listening_ms = 1, .expected = 10, .agents = w, .n_agents = 1};
}

static void a_silence_counts_when_somebody_else_was_heard_of_after_the_limit(void **state)
{
    (void)state;
    struct connected_peer w = {NOW - 100 * S, NOW};
    struct reach r = with(&w);
    assert_int_equal(ask(&r, 1, NOW - 60 * S), REACH_COUNTS);
    assert_int_equal(ask(&r, 1, NOW - 59 * S), REACH_NOT_YET);
    assert_int_equal(left, 1 * S);
}

static void a_peer_that_has_just_come_is_no_evidence_yet(void **state)
{
    (void)state;
    struct connected_peer w = {NOW - 20 * S, NOW};
    struct reach r = with(&w);
    assert_int_equal(ask(&r, 1, NOW - 500 * S), REACH_NOT_YET);
    assert_int_equal(left, 40 * S);
}

static void nor_does_who_was_last_heard_of_before_the_limit_was_over(void **state)
{
    (void)state;
    struct connected_peer w = {NOW - 500 * S, NOW - 41 * S}; // its connection may be dead without anybody knowing
    struct reach r = with(&w);
    assert_int_equal(ask(&r, 1, NOW - 100 * S), REACH_NOT_YET);
    assert_true(left > 0);
    w.heard_ms = NOW - 40 * S;
    assert_int_equal(ask(&r, 1, NOW - 100 * S), REACH_COUNTS);
}

static void who_was_refused_has_time_to_dial_again_however_short_the_limit(void **state)
{
    (void)state;
    struct connected_peer w = {NOW - 500 * S, NOW};
    struct reach r = with(&w);
    r.listening_ms = NOW - 8 * S;
    assert_int_equal(reach_verdict(&r, 1, NOW - 500 * S, 5 * S, NOW, &left), REACH_NOT_YET);
    assert_int_equal(left, 7 * S);
    r.listening_ms = NOW - 15 * S;
    assert_int_equal(reach_verdict(&r, 1, NOW - 500 * S, 5 * S, NOW, &left), REACH_COUNTS);
}

static void one_peer_of_many_is_enough(void **state)
{
    (void)state;
    struct connected_peer w[] = {{NOW - 500 * S, NOW - 300 * S}, {NOW - 90 * S, NOW}, {NOW - 10 * S, NOW}};
    struct reach r = with(w);
    r.n_agents = ARRAY_LEN(w);
    assert_int_equal(ask(&r, 1, NOW - 100 * S), REACH_COUNTS);
}

static void silence_of_everybody_never_counts(void **state)
{
    (void)state;
    struct connected_peer peer = {1, NOW};
    struct reach r = {.listening_ms = 1, .expected = 10, .replicas = &peer, .n_replicas = 1};
    assert_int_equal(ask(&r, 2, 1), REACH_NOBODY);
    assert_true(left > 0);
}

static void another_replica_is_evidence_where_there_are_no_other_agents(void **state)
{
    (void)state;
    struct connected_peer peer = {NOW - 100 * S, NOW};
    struct reach r = {.listening_ms = 1, .expected = 2, .replicas = &peer, .n_replicas = 1};
    assert_int_equal(ask(&r, 2, NOW - 100 * S), REACH_COUNTS);
    r.n_replicas = 0;
    assert_int_equal(ask(&r, 2, NOW - 100 * S), REACH_NOBODY);
}

static void who_cannot_be_dialed_misses_nobody(void **state)
{
    (void)state;
    struct connected_peer w = {1, NOW};
    struct reach r = with(&w);
    r.listening_ms = 0;
    assert_int_equal(ask(&r, 1, 1), REACH_NOBODY);
    r.listening_ms = NOW - 10 * S;
    assert_int_equal(ask(&r, 1, 1), REACH_NOT_YET);
    assert_int_equal(left, 50 * S);
}

// No wait is longer than the limit, whatever the clock was set to.
static void a_clock_that_was_put_back_keeps_nobody_waiting(void **state)
{
    (void)state;
    struct connected_peer w = {NOW + 5000 * S, NOW + 5000 * S};
    struct reach r = with(&w);
    assert_int_equal(ask(&r, 1, NOW + 9000 * S), REACH_NOT_YET);
    assert_int_equal(left, LIMIT);
    assert_int_equal(ask(&r, 1, 1), REACH_NOT_YET);
    assert_int_equal(left, LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silence_counts_when_somebody_else_was_heard_of_after_the_limit),
        cmocka_unit_test(a_peer_that_has_just_come_is_no_evidence_yet),
        cmocka_unit_test(nor_does_who_was_last_heard_of_before_the_limit_was_over),
        cmocka_unit_test(who_was_refused_has_time_to_dial_again_however_short_the_limit),
        cmocka_unit_test(one_peer_of_many_is_enough),
        cmocka_unit_test(silence_of_everybody_never_counts),
        cmocka_unit_test(another_replica_is_evidence_where_there_are_no_other_agents),
        cmocka_unit_test(who_cannot_be_dialed_misses_nobody),
        cmocka_unit_test(a_clock_that_was_put_back_keeps_nobody_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
