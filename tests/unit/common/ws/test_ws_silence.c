// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_silence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static int64_t again;

static struct ws_silence heard_at_0(void)
{
    return (struct ws_silence){.ping_ms = 10000, .pong_ms = 10000};
}

static void who_waits_for_nothing_pings_after_a_long_silence(void **state)
{
    struct ws_silence s = heard_at_0();
    (void)state;
    assert_int_equal(ws_silence_ask(&s, 1, false, &again), WS_SILENCE_FINE);
    assert_int_equal(again, 9999);
    assert_int_equal(ws_silence_ask(&s, 10000, false, &again), WS_SILENCE_PING);
    assert_int_equal(again, 10000);
    assert_int_equal(ws_silence_ask(&s, 19999, false, &again), WS_SILENCE_FINE);
    assert_int_equal(ws_silence_ask(&s, 20000, false, &again), WS_SILENCE_DEAD);
}

static void who_is_never_to_ping_pings_once_somebody_waits(void **state)
{
    struct ws_silence s = {.ping_ms = WS_SILENCE_NEVER_MS, .pong_ms = 10000};
    const int64_t day = 24 * 3600 * 1000;
    (void)state;
    assert_int_equal(ws_silence_ask(&s, day, false, &again), WS_SILENCE_FINE);
    assert_true(again > 365 * day);
    assert_true(ws_silence_sent(&s));
    assert_int_equal(ws_silence_ask(&s, day, true, &again), WS_SILENCE_PING);
    assert_int_equal(ws_silence_ask(&s, day + WS_SILENCE_PONG_MS, true, &again), WS_SILENCE_DEAD);
}

static void who_waits_pings_soon(void **state)
{
    struct ws_silence s = heard_at_0();
    (void)state;
    assert_int_equal(ws_silence_ask(&s, WS_SILENCE_PING_MS, true, &again), WS_SILENCE_PING);
    assert_int_equal(again, WS_SILENCE_PONG_MS);
    assert_int_equal(ws_silence_ask(&s, WS_SILENCE_PING_MS + WS_SILENCE_PONG_MS, true, &again), WS_SILENCE_DEAD);
}

static void a_peer_that_is_heard_is_not_dead(void **state)
{
    struct ws_silence s = heard_at_0();
    (void)state;
    assert_int_equal(ws_silence_ask(&s, WS_SILENCE_PING_MS, true, &again), WS_SILENCE_PING);
    ws_silence_heard(&s, WS_SILENCE_PING_MS + 5);
    assert_int_equal(ws_silence_ask(&s, WS_SILENCE_PING_MS + 6, true, &again), WS_SILENCE_FINE);
    assert_int_equal(again, WS_SILENCE_PING_MS - 1);
}

// The timer may have been armed for long.
static void the_first_call_after_a_rest_asks_again(void **state)
{
    struct ws_silence s = heard_at_0();
    (void)state;
    assert_int_equal(ws_silence_ask(&s, 1, false, &again), WS_SILENCE_FINE);
    assert_true(ws_silence_sent(&s));
    assert_int_equal(ws_silence_ask(&s, 2, true, &again), WS_SILENCE_FINE);
    assert_int_equal(again, WS_SILENCE_PING_MS - 2);
    assert_false(ws_silence_sent(&s));
}

// Its pong had ten seconds; from the ping on, not from the call on, it now has fewer.
static void a_ping_that_is_out_counts(void **state)
{
    struct ws_silence s = heard_at_0();
    (void)state;
    assert_int_equal(ws_silence_ask(&s, 10000, false, &again), WS_SILENCE_PING);
    assert_int_equal(ws_silence_ask(&s, 11000, true, &again), WS_SILENCE_FINE);
    assert_int_equal(again, WS_SILENCE_PONG_MS - 1000);
}

static void limits_that_are_shorter_stay(void **state)
{
    struct ws_silence s = {.ping_ms = 20, .pong_ms = 30};
    (void)state;
    assert_int_equal(ws_silence_ask(&s, 20, true, &again), WS_SILENCE_PING);
    assert_int_equal(again, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_nothing_pings_after_a_long_silence),
        cmocka_unit_test(who_is_never_to_ping_pings_once_somebody_waits),
        cmocka_unit_test(who_waits_pings_soon),
        cmocka_unit_test(a_peer_that_is_heard_is_not_dead),
        cmocka_unit_test(the_first_call_after_a_rest_asks_again),
        cmocka_unit_test(a_ping_that_is_out_counts),
        cmocka_unit_test(limits_that_are_shorter_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
