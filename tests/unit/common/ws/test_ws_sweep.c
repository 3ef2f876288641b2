// SPDX-License-Identifier: Apache-2.0
// How the server notices peers that are silent, or have stopped reading.
#include "tests/unit/common/ws/ws_world.h"

#include "common/base/mem.h"
#include "tests/unit/support/session_say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Both ends are on one loop. Where the loop stands still, each of them may take the other for dead, and what happens
// says nothing. Returns whether it stood still.
static bool turn_for(int64_t ms)
{
    enum { STILL_MS = 200 };
    bool still = false;
    int64_t begun = clock_mono_ms(&clock_system), now = begun;
    while (now < begun + ms && !p.closed) {
        int64_t before = now;
        loop_run_once(f.loop, 10);
        now = clock_mono_ms(&clock_system);
        still = still || now - before > STILL_MS;
    }
    return still;
}

static void a_silent_session_is_asked_and_then_given_up(void **state)
{
    bool still;
    (void)state;
    do {
        world_restart(&(struct ws_server_config){.ping_ms = 1000}, "127.0.0.1:0");
        open_peer(NULL);
        still = turn_for(3500); // it answers pings: it lives
    } while (still && seen("close"));
    assert_false(seen("close"));
    ws_client_pause(p.client); // it does not read any more
    WS_UNTIL(&f, seen("close 1006"));
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
}

static bool awaited;

static bool waits(void *ctx, const struct ws_session *s)
{
    (void)ctx, (void)s;
    return awaited;
}

static void listen_unix(bool (*waits_for)(void *ctx, const struct ws_session *s))
{
    char address[64];
    snprintf(address, sizeof address, "unix:/tmp/cadre-test-ws-%d.sock", (int)getpid());
    world_restart(&(struct ws_server_config){.ping_ms = 40, .waits = waits_for}, address);
}

static void a_session_of_this_host_is_asked_only_while_somebody_waits(void **state)
{
    (void)state;
    awaited = false;
    listen_unix(waits);
    open_peer(NULL);
    echo_both_kinds();
    ws_client_pause(p.client); // it answers no ping
    for (int i = 0; i < 100; i++)
        loop_run_once(f.loop, 5);
    assert_false(seen("close"));
    awaited = true;
    struct err err = ERR_INIT;
    assert_int_equal(session_say(f.session, true, "a question", 10, &err), 0);
    WS_UNTIL(&f, seen("close 1006"));
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
}

static const struct ws_session *awaited_one; // the only session that somebody waits for
static size_t looks;                         // at sessions, since the last one at that one; 0 = not yet

static bool waits_for_one(void *ctx, const struct ws_session *s)
{
    (void)ctx;
    looks = s == awaited_one ? 1 : looks ? looks + 1 : 0;
    return s == awaited_one;
}

// The rounds over the connections end when none needs them. A connection that leaves must not make a part of a round
// look like a whole one.
static void a_session_is_awaited_while_others_leave(void **state)
{
    enum { OTHERS = 200, LEAVE = 100 };
    static struct ws_peer others[OTHERS];
    struct err err = ERR_INIT;
    (void)state;
    listen_unix(waits_for_one);
    open_peer(NULL);
    ws_client_pause(p.client); // it answers no ping
    struct ws_session *session = f.session;
    for (size_t i = 0; i < OTHERS; i++) {
        ws_peer_start(&others[i], &f, NULL);
        WS_UNTIL(&f, others[i].opened);
    }
    awaited_one = session;
    assert_int_equal(session_say(session, true, "a question", 10, &err), 0);
    WS_UNTIL(&f, looks > LEAVE);
    for (size_t i = 0; i < LEAVE; i++)
        ws_peer_stop(&others[i]);
    WS_UNTIL(&f, seen("close 1006 no answer to a ping"));
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
    for (size_t i = LEAVE; i < OTHERS; i++)
        ws_peer_stop(&others[i]);
}

// While a session is paused, the rounds over the connections have other parts. A session that is swept again too early
// would have no time for its answer.
static void a_silent_session_has_its_time_while_another_one_is_paused_and_goes_on(void **state)
{
    enum { PING_MS = 400, PHASE_MS = PING_MS / 4, SOON_MS = PING_MS * 2 };
    static struct ws_peer other;
    (void)state;
    int64_t begun = clock_mono_ms(&clock_system), now;
    world_restart(&(struct ws_server_config){.ping_ms = PING_MS}, "127.0.0.1:0");
    open_peer(NULL);
    ws_client_pause(p.client); // it answers no ping
    ws_peer_start(&other, &f, NULL);
    WS_UNTIL(&f, other.opened);
    for (bool paused = false; (now = clock_mono_ms(&clock_system)) < begun + SOON_MS && !seen("close");
         loop_run_once(f.loop, 5)) {
        bool pause = (now - begun) / PHASE_MS % 2;
        if (pause != paused)
            (pause ? ws_session_pause : ws_session_resume)(f.session);
        paused = pause;
    }
    assert_false(seen("close"));
    ws_session_resume(f.session);
    WS_UNTIL(&f, seen("close 1006 no answer to a ping"));
    ws_peer_stop(&other);
}

// The server does not read the pings of the client, which would take the server for dead.
static void a_server_that_does_not_listen_shows_that_it_is_there(void **state)
{
    bool still;
    (void)state;
    do {
        world_restart(&(struct ws_server_config){.ping_ms = 4000}, "127.0.0.1:0"); // it shows itself every 200 ms
        open_peer(&(struct ws_client_config){.ping_ms = 300, .pong_ms = 1500});
        ws_session_pause(f.session);
        still = turn_for(3000);
    } while (still && p.closed);
    assert_false(p.closed);
    ws_session_resume(f.session);
    ws_peer_send(&p, "hello");
    WS_UNTIL(&f, p.got.len);
}

static void a_paused_session_that_takes_nothing_is_given_up(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    world_restart(&(struct ws_server_config){.ping_ms = 40}, "127.0.0.1:0");
    open_peer(NULL);
    ws_session_pause(f.session);
    for (int i = 0; i < 100; i++) // nothing waits for it: it is left alone
        loop_run_once(f.loop, 5);
    assert_false(seen("close"));
    ws_client_pause(p.client);
    char *data = xcalloc(1, MIB);
    for (int i = 0; i < 32; i++)
        assert_int_equal(session_say(f.session, false, data, MIB, &err), 0);
    free(data);
    WS_UNTIL(&f, seen("close 1006 it has stopped reading"));
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
}

// The queue is empty, because libwebsockets has the part of the last message that the socket did not take. The owner of
// the session hears at once, and libwebsockets does not try for seconds to send that part.
static void a_paused_session_that_does_not_take_its_last_message_is_given_up(void **state)
{
    enum { LEN = 250 << 10, TURNS = 10 }; // LEN: more than a Unix socket takes, in one frame
    static const char data[LEN];
    struct err err = ERR_INIT;
    (void)state;
    listen_unix(NULL);
    open_peer(NULL);
    ws_session_pause(f.session);
    ws_client_pause(p.client);
    assert_int_equal(session_say(f.session, false, data, LEN, &err), 0);
    WS_UNTIL(&f, ws_session_queued(f.session) == 0);
    WS_UNTIL(&f, ws_server_counters(f.server)->silent == 1);
    loop_run_once(f.loop, 0);
    assert_true(seen("close 1006 it has stopped reading"));
    assert_int_equal(ws_server_counters(f.server)->sessions, 0);
    for (int i = 0; i < TURNS && ws_server_counters(f.server)->connections; i++)
        loop_run_once(f.loop, 100);
    assert_int_equal(ws_server_counters(f.server)->connections, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WS_TEST(a_silent_session_is_asked_and_then_given_up),
        WS_TEST(a_session_of_this_host_is_asked_only_while_somebody_waits),
        WS_TEST(a_session_is_awaited_while_others_leave),
        WS_TEST(a_silent_session_has_its_time_while_another_one_is_paused_and_goes_on),
        WS_TEST(a_server_that_does_not_listen_shows_that_it_is_there),
        WS_TEST(a_paused_session_that_takes_nothing_is_given_up),
        WS_TEST(a_paused_session_that_does_not_take_its_last_message_is_given_up),
    };
    return cmocka_run_group_tests(tests, world_setup_all, world_teardown_all);
}
