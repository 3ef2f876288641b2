// SPDX-License-Identifier: Apache-2.0
// Our client against the server on libwebsockets: what both promise, over TCP, TLS and Unix sockets.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static struct ws_fixture f;
static struct ws_peer p;
static struct certs certs;

static int setup_all(void **state)
{
    (void)state;
    certs_make(&certs);
    return 0;
}

static int teardown_all(void **state)
{
    (void)state;
    certs_done(&certs);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    p = (struct ws_peer){0};
    ws_fixture_start(&f, &(struct ws_server_config){
                             .cert_pem = certs.server_cert, .key_pem = certs.server_key, .max_message = 8 * MIB});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    return 0;
}

static void open_peer(const struct ws_client_config *config)
{
    ws_peer_start(&p, &f, config);
    WS_UNTIL(&f, p.opened || p.closed);
    assert_string_equal(p.err.msg, "");
    WS_UNTIL(&f, f.session);
}

static bool seen(const char *text)
{
    return strstr(buf_str(&f.trace), text) != NULL;
}

static void echo_both_kinds(void)
{
    struct err err = ERR_INIT;
    ws_peer_send(&p, "grüße");
    assert_int_equal(ws_client_message(p.client, false, "\0\1", 2, &err), 0);
    ws_peer_send(&p, "");
    WS_UNTIL(&f, p.got.len >= 14);
    assert_int_equal(p.got.len, 14);
    assert_memory_equal(p.got.data, "grüße|b:\0\1||", 14);
}

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

static void messages_come_back_over_tls(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct ws_tls *tls = ws_tls_new(certs.ca, &err);
    ws_fixture_listen(&f, "127.0.0.1:0", true);
    open_peer(&(struct ws_client_config){.tls = tls});
    echo_both_kinds();
    ws_tls_unref(tls);
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
    assert_int_equal(ws_session_message(f.session, true, "last words", 10, &err), 0);
    ws_session_close(f.session, FRAME_CLOSE_TRY_LATER, "draining");
    assert_int_equal(ws_session_message(f.session, true, "x", 1, &err), ERR_GONE);
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
        assert_int_equal(ws_session_message(f.session, true, "abc", 3, &err), 0);
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
        assert_int_equal(ws_session_message(f.session, false, data, MIB, &err), 0);
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

static void a_silent_session_is_asked_and_then_given_up(void **state)
{
    (void)state;
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    ws_fixture_start(&f, &(struct ws_server_config){.ping_ms = 1000});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    open_peer(NULL);
    for (int64_t end = clock_mono_ms(&clock_system) + 3500; clock_mono_ms(&clock_system) < end;)
        loop_run_once(f.loop, 10); // it answers pings: it lives
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
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    ws_fixture_start(&f, &(struct ws_server_config){.ping_ms = 40, .waits = waits_for});
    ws_fixture_listen(&f, address, false);
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
    assert_int_equal(ws_session_message(f.session, true, "a question", 10, &err), 0);
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
    assert_int_equal(ws_session_message(session, true, "a question", 10, &err), 0);
    WS_UNTIL(&f, looks > LEAVE);
    for (size_t i = 0; i < LEAVE; i++)
        ws_peer_stop(&others[i]);
    WS_UNTIL(&f, seen("close 1006 no answer to a ping"));
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
    for (size_t i = LEAVE; i < OTHERS; i++)
        ws_peer_stop(&others[i]);
}

// It is not listened to, so it cannot be heard; whether it takes what waits for it can be seen.
// Its pings are not read; it would take the server for dead.
static void a_server_that_does_not_listen_shows_that_it_is_there(void **state)
{
    (void)state;
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    ws_fixture_start(&f, &(struct ws_server_config){.ping_ms = 4000}); // it shows itself every 200 ms
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    open_peer(&(struct ws_client_config){.ping_ms = 300, .pong_ms = 1500});
    ws_session_pause(f.session);
    for (int64_t end = clock_mono_ms(&clock_system) + 3000; clock_mono_ms(&clock_system) < end && !p.closed;)
        loop_run_once(f.loop, 10);
    assert_false(p.closed);
    ws_session_resume(f.session);
    ws_peer_send(&p, "hello");
    WS_UNTIL(&f, p.got.len);
}

static void a_paused_session_that_takes_nothing_is_given_up(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    ws_fixture_start(&f, &(struct ws_server_config){.ping_ms = 40});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    open_peer(NULL);
    ws_session_pause(f.session);
    for (int i = 0; i < 100; i++) // nothing waits for it: it is left alone
        loop_run_once(f.loop, 5);
    assert_false(seen("close"));
    ws_client_pause(p.client);
    char *data = xcalloc(1, MIB);
    for (int i = 0; i < 32; i++)
        assert_int_equal(ws_session_message(f.session, false, data, MIB, &err), 0);
    free(data);
    WS_UNTIL(&f, seen("close 1006 it has stopped reading"));
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
}

static void connections_over_the_cap_are_turned_away(void **state)
{
    (void)state;
    struct ws_peer other = {0};
    ws_fixture_stop(&f);
    ws_fixture_start(&f, &(struct ws_server_config){.max_connections = 1});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    open_peer(NULL);
    ws_peer_start(&other, &f, NULL);
    WS_UNTIL(&f, other.closed);
    assert_int_equal(other.code, FRAME_CLOSE_ABNORMAL);
    assert_int_equal(ws_server_counters(f.server)->turned_away, 1);
    echo_both_kinds(); // who is in stays
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
    ws_fixture_stop(&f);
    ws_fixture_start(&f, &(struct ws_server_config){.max_session = MIB / 2});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    open_peer(NULL);
    assert_int_equal(ws_client_message(p.client, false, data, MIB, &err), 0);
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.code, FRAME_CLOSE_TRY_LATER);
}

static void an_untrusted_server_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct ws_tls *other = ws_tls_new(certs.other_ca, &err), *right = ws_tls_new(certs.ca, &err);
    ws_fixture_listen(&f, "127.0.0.1:0", true);
    ws_peer_start(&p, &f, &(struct ws_client_config){.tls = other});
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(p.err.msg, "not trusted"));
    ws_peer_stop(&p);
    ws_peer_start(&p, &f, &(struct ws_client_config){.tls = right, .server_name = "somebody.else"});
    WS_UNTIL(&f, p.closed);
    assert_int_equal(p.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(p.err.msg, "name"));
    ws_peer_stop(&p);
    open_peer(&(struct ws_client_config){.tls = right, .server_name = "kubernetes"});
    ws_tls_unref(other);
    ws_tls_unref(right);
}

static void a_new_certificate_serves_new_connections(void **state)
{
    (void)state;
    struct certs fresh;
    struct err err = ERR_INIT;
    struct ws_peer second = {0};
    certs_make(&fresh);
    struct ws_tls *old_ca = ws_tls_new(certs.ca, &err), *new_ca = ws_tls_new(fresh.ca, &err);
    ws_fixture_listen(&f, "127.0.0.1:0", true);
    open_peer(&(struct ws_client_config){.tls = old_ca});
    assert_int_equal(ws_server_certificate(f.server, fresh.server_cert, certs.server_key, &err), ERR_INVALID);
    assert_int_equal(ws_server_certificate(f.server, "nonsense", certs.server_key, &err), ERR_INVALID);
    assert_int_equal(ws_server_certificate(f.server, fresh.server_cert, fresh.server_key, &err), 0);
    ws_peer_start(&second, &f, &(struct ws_client_config){.tls = new_ca});
    WS_UNTIL(&f, second.opened || second.closed);
    assert_string_equal(second.err.msg, "");
    echo_both_kinds(); // the old connection lives on
    ws_peer_stop(&second);
    ws_tls_unref(old_ca);
    ws_tls_unref(new_ca);
    certs_done(&fresh);
}

static void a_ca_that_is_none_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_null(ws_tls_new("", &err));
    assert_null(ws_tls_new("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &err));
    assert_int_equal(err.code, ERR_INVALID);
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
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(messages_come_back_over_tcp),
        T(messages_come_back_with_random_masks),
        T(messages_come_back_over_tls),
        T(messages_come_back_over_a_unix_socket),
        T(the_server_sees_headers_and_the_path_without_its_query),
        T(a_refusal_reaches_the_client_with_status_and_reason),
        T(only_known_subprotocols_are_spoken),
        T(the_client_closes_and_both_know_why),
        T(the_server_closes_and_both_know_why),
        T(a_client_that_disappears_is_noticed),
        T(a_server_that_disappears_is_noticed),
        T(a_message_over_the_cap_is_refused_by_the_server),
        T(a_message_over_the_cap_is_refused_by_the_client),
        T(the_client_can_stop_listening_for_a_while),
        T(the_server_can_stop_listening_for_a_while),
        T(a_slow_reader_fills_the_queue_up_to_its_cap),
        T(the_server_tells_when_a_session_has_drained),
        T(records_are_batched_and_arrive),
        T(a_silent_session_is_asked_and_then_given_up),
        T(a_session_of_this_host_is_asked_only_while_somebody_waits),
        T(a_session_is_awaited_while_others_leave),
        T(a_server_that_does_not_listen_shows_that_it_is_there),
        T(a_paused_session_that_takes_nothing_is_given_up),
        T(connections_over_the_cap_are_turned_away),
        T(a_quota_bounds_what_a_session_makes_us_hold),
        T(an_untrusted_server_is_refused),
        T(a_new_certificate_serves_new_connections),
        T(a_ca_that_is_none_is_refused),
        T(a_connection_that_cannot_be_says_why),
        T(a_configuration_that_cannot_work_is_refused_at_once),
        T(a_client_may_be_freed_in_any_callback),
        T(a_client_may_be_closed_before_it_opens),
        T(what_is_queued_before_opening_goes_out_after),
    };
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
