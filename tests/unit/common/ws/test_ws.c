// SPDX-License-Identifier: Apache-2.0
// Our client against the server on libwebsockets: what both promise, over TCP, TLS and Unix sockets.
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
#include <string.h>
#include <unistd.h>

static void messages_come_back_over_tcp(void **state)
{
    (void)state;
    open_peer(NULL);
    assert_string_equal(p.protocol, "cadre.v1");
    echo_both_kinds();
    assert_string_equal(buf_str(&f.trace), "upgrade / auth=none other=none\nopen cadre.v1\n"
                                           "message text 7\nmessage binary 2\nmessage text 0\n");
}

static void messages_come_back_with_random_masks(void **state)
{
    (void)state;
    open_peer(&(struct ws_client_config){.mask_always = true});
    echo_both_kinds();
}

static void messages_come_back_over_a_unix_socket(void **state)
{
    (void)state;
    char address[64];
    snprintf(address, sizeof address, "unix:/tmp/cadre-test-ws-%d.sock", (int)getpid());
    ws_fixture_listen(&f, address, false);
    open_peer(NULL);
    echo_both_kinds();
    ws_server_stop_listening(f.server);
    assert_int_not_equal(access(address + 5, F_OK), 0); // nothing is left behind
    ws_peer_send(&p, "still here");
    WS_UNTIL(&f, p.got.len == 14 + 11);
}

static void the_server_sees_headers_and_the_path_without_its_query(void **state)
{
    (void)state;
    const struct handshake_header headers[] = {{"Authorization", "Bearer abc"}, {"X-Other", "7"}};
    open_peer(&(struct ws_client_config){.path = "/v1/groups/ml/llama?a=1&b=2",
                                         .subprotocols = "unknown, cadre.v1.json, cadre.v1",
                                         .headers = headers,
                                         .n_headers = 2});
    assert_string_equal(p.protocol, "cadre.v1.json");
    assert_true(seen("upgrade /v1/groups/ml/llama auth=Bearer abc other=7\n"));
}

static void a_refusal_reaches_the_client_with_status_and_reason(void **state)
{
    (void)state;
    f.refuse_status = 401;
    ws_peer_start(&p, &f, NULL);
    WS_UNTIL(&f, p.closed);
    assert_false(p.opened);
    assert_int_equal(p.err.code, ERR_UNAUTHORIZED);
    assert_int_equal(p.err.http_status, 401);
    assert_non_null(strstr(p.err.msg, "you may not"));
    assert_false(seen("close")); // it was never a session
    assert_int_equal(ws_server_counters(f.server)->refused, 1);
}

static void only_known_subprotocols_are_spoken(void **state)
{
    (void)state;
    ws_peer_start(&p, &f, &(struct ws_client_config){.subprotocols = "chat"});
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.err.http_status, 426);
    assert_non_null(strstr(p.err.msg, "offer the subprotocol cadre.v1 or cadre.v1.json"));
    assert_false(seen("upgrade"));
}

static void the_client_closes_and_both_know_why(void **state)
{
    (void)state;
    open_peer(NULL);
    ws_peer_send(&p, "last words");
    ws_client_close(p.client, FRAME_CLOSE_NORMAL, "bye");
    struct err err = ERR_INIT;
    assert_int_equal(ws_client_message(p.client, true, "x", 1, &err), ERR_GONE);
    WS_UNTIL(&f, p.closed && seen("close"));
    assert_true(seen("message text 10\n")); // what was queued went out before
    assert_true(seen("close 1000 bye\n"));
    assert_int_equal(p.code, 1000);
    assert_string_equal(p.reason, "bye");
    assert_int_equal(p.err.code, 0);
}

static void the_server_closes_and_both_know_why(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    open_peer(NULL);
    assert_int_equal(session_say(f.session, true, "last words", 10, &err), 0);
    ws_session_close(f.session, FRAME_CLOSE_TRY_LATER, "draining");
    assert_int_equal(session_say(f.session, true, "x", 1, &err), ERR_GONE);
    WS_UNTIL(&f, p.closed && seen("close"));
    assert_string_equal(buf_str(&p.got), "last words|");
    assert_int_equal(p.code, FRAME_CLOSE_TRY_LATER);
    assert_string_equal(p.reason, "draining");
    assert_int_equal(p.err.code, 0);
    assert_true(seen("close 1013 draining\n"));
}

static void a_client_that_disappears_is_noticed(void **state)
{
    (void)state;
    open_peer(NULL);
    ws_client_free(TAKE_PTR(p.client));
    WS_UNTIL(&f, seen("close 1006"));
    assert_int_equal(ws_server_counters(f.server)->sessions, 0);
}

static void queue_records(void)
{
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *data = xcalloc(1, MIB);
    for (uint32_t i = 1; i <= 5; i++) {
        const struct record_header h = {.call = i, .type = RECORD_CALL};
        assert_int_equal(ws_session_record_copy(f.session, &h, data, MIB, &err), 0);
    }
}

static void what_such_a_client_was_not_sent_is_there_until_the_close_is_noted(void **state)
{
    (void)state;
    open_peer(NULL);
    queue_records();
    ws_client_free(TAKE_PTR(p.client));
    WS_UNTIL(&f, seen("close 1006"));
    assert_in_range(f.unsent, 1, 6 * MIB);
}

static void what_a_client_that_closes_was_not_sent_is_there_until_the_close_is_noted(void **state)
{
    (void)state;
    open_peer(NULL);
    ws_client_pause(p.client);
    queue_records();
    ws_client_close(p.client, FRAME_CLOSE_NORMAL, "bye");
    WS_UNTIL(&f, seen("close 1000 bye"));
    assert_in_range(f.unsent, 1, 6 * MIB);
}

static void a_server_that_disappears_is_noticed(void **state)
{
    (void)state;
    open_peer(NULL);
    ws_server_free(TAKE_PTR(f.server));
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.code, FRAME_CLOSE_ABNORMAL);
    assert_int_equal(p.err.code, ERR_GONE);
    assert_false(seen("close")); // no callbacks once the server is freed
}

static void a_message_over_the_cap_is_refused_by_the_server(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *big = xcalloc(1, 8 * MIB + 1);
    open_peer(NULL);
    assert_int_equal(ws_client_message(p.client, false, big, 8 * MIB, &err), 0);
    WS_UNTIL(&f, p.got.len == 8 * MIB + 3);
    assert_int_equal(ws_client_message(p.client, false, big, 8 * MIB + 1, &err), 0);
    WS_UNTIL(&f, p.closed && seen("close"));
    assert_int_equal(p.code, FRAME_CLOSE_TOO_BIG);
    assert_true(seen("close 1009"));
    assert_int_equal(ws_server_counters(f.server)->over_limit, 1);
}

static void a_message_over_the_cap_is_refused_by_the_client(void **state)
{
    (void)state;
    open_peer(&(struct ws_client_config){.max_message = 10});
    ws_peer_send(&p, "0123456789");
    WS_UNTIL(&f, p.got.len == 11);
    ws_peer_send(&p, "0123456789a");
    WS_UNTIL(&f, p.closed && seen("close"));
    assert_int_equal(p.code, FRAME_CLOSE_TOO_BIG);
    assert_int_equal(p.err.code, ERR_LIMIT);
    assert_true(seen("close 1009"));
}

static void the_client_can_stop_listening_for_a_while(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    open_peer(NULL);
    f.quiet = true;
    ws_client_pause(p.client);
    for (int i = 0; i < 3; i++)
        assert_int_equal(session_say(f.session, true, "abc", 3, &err), 0);
    WS_UNTIL(&f, ws_session_queued(f.session) == 0);
    for (int i = 0; i < 10; i++)
        loop_run_once(f.loop, 1);
    assert_int_equal(p.got.len, 0);
    ws_client_resume(p.client);
    WS_UNTIL(&f, p.got.len == 12);
    assert_string_equal(buf_str(&p.got), "abc|abc|abc|");
}

static void the_server_can_stop_listening_for_a_while(void **state)
{
    (void)state;
    open_peer(NULL);
    ws_session_pause(f.session);
    for (int i = 0; i < 3; i++)
        ws_peer_send(&p, "abc");
    WS_UNTIL(&f, ws_client_queued(p.client) == 0);
    for (int i = 0; i < 10; i++)
        loop_run_once(f.loop, 1);
    assert_false(seen("message"));
    ws_session_resume(f.session);
    WS_UNTIL(&f, p.got.len == 12);
}

static void a_slow_reader_fills_the_queue_up_to_its_cap(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *data = xcalloc(1, MIB);
    open_peer(&(struct ws_client_config){.max_queue = 30 * MIB});
    ws_session_pause(f.session);
    int sent = 0;
    while (sent < 100 && ws_client_message(p.client, false, data, MIB, &err) == 0)
        sent++;
    assert_int_equal(sent, 29); // with what it takes to keep them
    assert_int_equal(err.code, ERR_LIMIT);
    assert_non_null(strstr(err.msg, "reads too slowly"));
    f.quiet = true;
    ws_session_resume(f.session);
    WS_UNTIL(&f, ws_client_queued(p.client) == 0);
    assert_int_equal(p.drained, 1); // from above the high mark to below the low one
    WS_UNTIL(&f, ws_server_counters(f.server)->messages_in == 29);
}

static void the_server_tells_when_a_session_has_drained(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *data = xcalloc(1, MIB);
    p.pieces = true;
    open_peer(NULL);
    for (int i = 0; i < 5; i++)
        assert_int_equal(session_say(f.session, false, data, MIB, &err), 0);
    assert_int_equal(f.drained, 0);
    WS_UNTIL(&f, p.got.len == 5 * MIB + 5);
    assert_int_equal(f.drained, 1);
}

static void records_are_batched_and_arrive(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    p.pieces = true;
    open_peer(NULL);
    f.quiet = true;
    for (uint32_t i = 1; i <= 1000; i++) {
        const struct record_header h = {.call = i, .type = RECORD_CALL};
        assert_int_equal(ws_client_record_copy(p.client, &h, "12345678", 8, &err), 0);
        assert_int_equal(ws_session_record_copy(f.session, &h, "12345678", 8, &err), 0);
    }
    WS_UNTIL(&f, p.got.len >= 24000 && ws_server_counters(f.server)->bytes_in == 24000);
    assert_in_range(ws_server_counters(f.server)->messages_in, 2, 10); // waves, the first before all were queued
    assert_int_equal(ws_server_counters(f.server)->messages_out, 1);
    assert_int_equal(p.got.len, 24001); // one message
}

static void connections_over_the_cap_are_turned_away(void **state)
{
    (void)state;
    struct ws_peer other = {0};
    world_restart(&(struct ws_server_config){.max_connections = 1}, "127.0.0.1:0");
    open_peer(NULL);
    ws_peer_start(&other, &f, NULL);
    WS_UNTIL(&f, other.closed);
    assert_int_equal(other.code, FRAME_CLOSE_ABNORMAL);
    assert_int_equal(ws_server_counters(f.server)->turned_away, 1);
    echo_both_kinds(); // open sessions stay
    ws_peer_stop(&p);
    WS_UNTIL(&f, ws_server_counters(f.server)->connections == 0);
    ws_peer_stop(&other);
    open_peer(NULL);
}

static void a_quota_bounds_what_a_session_makes_us_hold(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    _cleanup_(free_p) char *data = xcalloc(1, MIB);
    world_restart(&(struct ws_server_config){.max_session = MIB / 2}, "127.0.0.1:0");
    open_peer(NULL);
    assert_int_equal(ws_client_message(p.client, false, data, MIB, &err), 0);
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.code, FRAME_CLOSE_TRY_LATER);
}

static void a_connection_that_cannot_be_says_why(void **state)
{
    (void)state;
    char address[64];
    ws_server_stop_listening(f.server);
    snprintf(address, sizeof address, "127.0.0.1:%d", f.port);
    ws_peer_start(&p, &f, &(struct ws_client_config){.address = address});
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(p.err.msg, "cannot connect to 127.0.0.1:"));
    assert_non_null(strstr(p.err.msg, "Connection refused"));
    ws_peer_stop(&p);
    ws_peer_start(&p, &f, &(struct ws_client_config){.address = "unix:/nonexistent/socket"});
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.err.code, ERR_UNAVAILABLE);
}

static void a_configuration_that_cannot_work_is_refused_at_once(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "host", "host:", "host:0", "host:99999", "::1:80", "[::1]", "unix:"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        assert_null(ws_client_new(f.loop, &(struct ws_client_config){.address = bad[i]}, &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
    struct err err = ERR_INIT;
    assert_int_equal(ws_server_listen(f.server, "nowhere", false, &err), ERR_INVALID);
    assert_int_equal(ws_server_listen(f.server, "name:80", false, &err), ERR_INVALID);
    assert_int_equal(ws_server_listen(f.server, f.address, false, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "in use"));
    assert_int_equal(ws_server_listen(f.server, "unix:/nonexistent/socket", false, &err), ERR_UNAVAILABLE);
}

static void a_client_may_be_freed_in_any_callback(void **state)
{
    (void)state;
    for (int where = 1; where <= 4; where++) {
        struct err err = ERR_INIT;
        p = (struct ws_peer){.free_in = where, .pieces = true};
        ws_peer_start(&p, &f, NULL);
        if (where > 1) {
            WS_UNTIL(&f, p.opened);
            assert_int_equal(ws_client_message(p.client, where != 2, "abc", 3, &err), 0);
        }
        if (where == 4)
            ws_client_close(p.client, FRAME_CLOSE_NORMAL, NULL);
        WS_UNTIL(&f, !p.client);
        bool closed = p.closed;
        for (int i = 0; i < 5; i++)
            loop_run_once(f.loop, 1);
        assert_int_equal(p.closed, closed); // nothing more comes
        ws_peer_stop(&p);
    }
}

static void a_client_may_be_closed_before_it_opens(void **state)
{
    (void)state;
    ws_peer_start(&p, &f, NULL);
    ws_client_close(p.client, FRAME_CLOSE_GOING_AWAY, "changed my mind");
    assert_false(p.closed); // never inside the call
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.code, FRAME_CLOSE_GOING_AWAY);
    assert_false(p.opened);
}

static void what_is_queued_before_opening_goes_out_after(void **state)
{
    char early[401] = "";
    (void)state;
    memset(early, 'e', sizeof early - 1); // libwebsockets would tear it where it came with the handshake
    ws_peer_start(&p, &f, &(struct ws_client_config){.mask_always = true});
    ws_peer_send(&p, early);
    WS_UNTIL(&f, p.got.len == sizeof early);
    assert_memory_equal(p.got.data, early, sizeof early - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WS_TEST(messages_come_back_over_tcp),
        WS_TEST(messages_come_back_with_random_masks),
        WS_TEST(messages_come_back_over_a_unix_socket),
        WS_TEST(the_server_sees_headers_and_the_path_without_its_query),
        WS_TEST(a_refusal_reaches_the_client_with_status_and_reason),
        WS_TEST(only_known_subprotocols_are_spoken),
        WS_TEST(the_client_closes_and_both_know_why),
        WS_TEST(the_server_closes_and_both_know_why),
        WS_TEST(a_client_that_disappears_is_noticed),
        WS_TEST(what_such_a_client_was_not_sent_is_there_until_the_close_is_noted),
        WS_TEST(what_a_client_that_closes_was_not_sent_is_there_until_the_close_is_noted),
        WS_TEST(a_server_that_disappears_is_noticed),
        WS_TEST(a_message_over_the_cap_is_refused_by_the_server),
        WS_TEST(a_message_over_the_cap_is_refused_by_the_client),
        WS_TEST(the_client_can_stop_listening_for_a_while),
        WS_TEST(the_server_can_stop_listening_for_a_while),
        WS_TEST(a_slow_reader_fills_the_queue_up_to_its_cap),
        WS_TEST(the_server_tells_when_a_session_has_drained),
        WS_TEST(records_are_batched_and_arrive),
        WS_TEST(connections_over_the_cap_are_turned_away),
        WS_TEST(a_quota_bounds_what_a_session_makes_us_hold),
        WS_TEST(a_connection_that_cannot_be_says_why),
        WS_TEST(a_configuration_that_cannot_work_is_refused_at_once),
        WS_TEST(a_client_may_be_freed_in_any_callback),
        WS_TEST(a_client_may_be_closed_before_it_opens),
        WS_TEST(what_is_queued_before_opening_goes_out_after),
    };
    return cmocka_run_group_tests(tests, world_setup_all, world_teardown_all);
}
