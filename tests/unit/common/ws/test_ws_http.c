// SPDX-License-Identifier: Apache-2.0
// How the server handles HTTP requests, and peers that break the rules, over a plain socket.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/ws/ws_server_state.h"
#include "tests/unit/support/text_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct ws_fixture f;
static struct buf got; // what the server sent
static int fd;
static bool ended;

static int setup(void **state)
{
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.max_body = 1000});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    got = BUF_INIT(64 << 20);
    fd = -1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (fd >= 0)
        close(fd);
    buf_done(&got);
    ws_fixture_stop(&f);
    return 0;
}

static void dial(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f.port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0)
        close(fd);
    buf_reset(&got);
    ended = false;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
}

static void say(const void *data, size_t len)
{
    assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

static bool hear(void)
{
    char piece[4096];
    for (ssize_t n; (n = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) != -1 || errno != EAGAIN;) {
        if (n <= 0) {
            ended = true;
            break;
        }
        buf_append(&got, piece, (size_t)n);
    }
    return ended;
}

// Sends a request; returns all that comes until the server ends the connection.
static const char *ask(const char *request)
{
    dial();
    say(request, strlen(request));
    WS_UNTIL(&f, hear());
    return buf_str(&got);
}

static void a_get_is_answered(void **state)
{
    (void)state;
    assert_string_equal(ask("GET /healthz?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"),
                        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\nConnection: close\r\n"
                        "X-Test: 1\r\n\r\n");
    assert_string_equal(buf_str(&f.trace), "GET /healthz - 0\n");
    assert_int_equal(ws_server_counters(f.server)->requests, 1);
}

static void a_post_gets_its_body_back(void **state)
{
    (void)state;
    assert_true(
        text_ends(ask("POST /v1 HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
                      "{\"a\":[1]}"),
                  "\r\n\r\n{\"a\":[1]}"));
    assert_true(text_ends(ask("POST /v1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"), "\r\n\r\n"));
    assert_string_equal(buf_str(&f.trace), "POST /v1 application/json 9\nPOST /v1 - 0\n");
}

static void a_body_may_come_in_pieces(void **state)
{
    (void)state;
    dial();
    static const char head[] = "POST /v1 HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n";
    for (size_t i = 0; i < sizeof head - 1; i++) {
        say(head + i, 1);
        loop_run_once(f.loop, 1);
    }
    for (int i = 0; i < 6; i++) {
        say(&"abcdef"[i], 1);
        loop_run_once(f.loop, 1);
    }
    WS_UNTIL(&f, hear());
    assert_true(text_ends(buf_str(&got), "\r\n\r\nabcdef"));
}

static void what_is_wrong_with_a_request_is_said(void **state)
{
    (void)state;
    char big[1200] = "";
    snprintf(big, sizeof big, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n%01001d", 0);
    assert_true(str_starts(ask(big), "HTTP/1.1 413 "));
    assert_true(str_starts(ask("POST / HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 411 "));
    assert_true(
        str_starts(ask("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "HTTP/1.1 411 "));
    assert_true(str_starts(ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n"), "HTTP/1.1 400 "));
    assert_true(str_starts(ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5x\r\n\r\n"), "HTTP/1.1 400 "));
    assert_true(str_starts(ask("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde"), "HTTP/1.1 400 "));
    assert_true(str_starts(ask("DELETE / HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 405 "));
    assert_string_equal(buf_str(&f.trace), ""); // nobody was bothered
}

static void an_answer_may_take_its_time(void **state)
{
    (void)state;
    f.hold_requests = true;
    dial();
    static const char request[] = "POST /call HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n1";
    say(request, sizeof request - 1);
    WS_UNTIL(&f, f.request);
    say("GET /more HTTP/1.1\r\n\r\n", 22); // what comes behind a request is not heard
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, 1);
    assert_int_equal(got.len, 0);
    static char answer[3 << 20];
    memset(answer, 'x', sizeof answer);
    ws_request_respond(f.request, 200, "application/json", NULL, answer, sizeof answer);
    WS_UNTIL(&f, hear());
    assert_true(got.len > sizeof answer);
    assert_int_equal(got.data[got.len - 1], 'x');
    assert_false(strstr(buf_str(&f.trace), "/more"));
}

static void a_request_held_at_the_end_of_the_server_is_no_leak(void **state)
{
    (void)state;
    f.hold_requests = true;
    dial();
    static const char request[] = "GET /call HTTP/1.1\r\nHost: h\r\n\r\n";
    say(request, sizeof request - 1);
    WS_UNTIL(&f, f.request);
}

static void garbage_ends_only_its_own_connection(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
    } garbage[] = {
        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11}, // TLS
        {"\0\0\0\0\0\0\0\0\r\n\r\n", 12},
        {"GET\r\n\r\n", 7},
        {"GET http://evil/ HTTP/1.1\r\n\r\n", 29},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24},
        {"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA\r\n\r\n", 92},
        {"CONNECT h:1 HTTP/1.1\r\n\r\n", 24},
    };
    struct ws_peer p = {0};
    ws_peer_start(&p, &f, NULL);
    WS_UNTIL(&f, f.session);
    for (size_t i = 0; i < ARRAY_LEN(garbage); i++) {
        dial();
        say(garbage[i].bytes, garbage[i].len);
        shutdown(fd, SHUT_WR);
        WS_UNTIL(&f, hear());
        assert_null(strstr(buf_str(&got), "101"));
    }
    ws_peer_send(&p, "still there?");
    WS_UNTIL(&f, p.got.len == 13);
    ws_peer_stop(&p);
}

// A token of 16 KiB comes in; one that is longer is answered, though it is not read.
static void long_headers_are_told_so(void **state)
{
    static const char upgrade[] = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    (void)state;
    for (int upgrading = 0; upgrading < 2; upgrading++) {
        for (int len = 16 << 10; len <= 60000; len += 60000 - (16 << 10)) {
            _cleanup_(free_p) char *request =
                xasprintf("GET /healthz HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %0*d\r\n%s%s\r\n", len, 0,
                          upgrading ? upgrade : "", upgrading ? "Sec-WebSocket-Protocol: none.of.ours\r\n" : "");
            const char *answer = ask(request);
            if (len > 60000 - 1)
                assert_true(str_starts(answer, "HTTP/1.1 431 ") && strstr(answer, "a token may have 16 KiB"));
            else
                assert_true(str_starts(answer, upgrading ? "HTTP/1.1 426 " : "HTTP/1.1 200 "));
        }
    }
}

static void endless_headers_are_bounded(void **state)
{
    (void)state;
    static char line[] = "X-Header-0000: 0123456789012345678901234567890123456789\r\n";
    dial();
    say("GET / HTTP/1.1\r\n", 16);
    for (int i = 0; i < 20000 && !hear(); i++) {
        if (send(fd, line, sizeof line - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
            break;
        loop_run_once(f.loop, 0);
    }
    say("", 0);
    shutdown(fd, SHUT_WR);
    WS_UNTIL(&f, hear());
}

static void restart(const struct ws_server_config *config)
{
    ws_fixture_stop(&f);
    ws_fixture_start(&f, config);
    ws_fixture_listen(&f, "127.0.0.1:0", false);
}

static void a_request_that_does_not_come_in_is_given_up(void **state)
{
    (void)state;
    restart(&(struct ws_server_config){.ping_ms = 40});
    assert_true(str_starts(ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc"), "HTTP/1.1 408 "));
    assert_string_equal(buf_str(&f.trace), ""); // nobody was bothered
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
}

static void bodies_that_come_in_are_bounded_together(void **state)
{
    (void)state;
    static const char begun[] = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
    static char half[600];
    restart(&(struct ws_server_config){.max_bodies = 1000});
    memset(half, 'x', sizeof half);
    dial();
    int first = fd;
    fd = -1;
    assert_int_equal(send(first, begun, sizeof begun - 1, MSG_NOSIGNAL), sizeof begun - 1);
    assert_int_equal(send(first, half, sizeof half, MSG_NOSIGNAL), sizeof half);
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, 1);
    dial();
    say(begun, sizeof begun - 1);
    say(half, sizeof half);
    WS_UNTIL(&f, hear());
    assert_true(str_starts(buf_str(&got), "HTTP/1.1 503 "));
    assert_int_equal(send(first, half, 400, MSG_NOSIGNAL), 400); // the earlier connections continue
    WS_UNTIL(&f, f.trace.len);
    assert_string_equal(buf_str(&f.trace), "POST /a - 1000\n");
    close(first);
    WS_UNTIL(&f, ws_server_counters(f.server)->connections == 0);
    assert_true(text_ends(ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok"), "\r\n\r\nok"));
}

static struct ws_request *held;

static int hold_up(void *ctx, struct ws_request *r)
{
    (void)ctx;
    held = r;
    return 1;
}

static int refuse_head(void *ctx, struct ws_request *r)
{
    (void)ctx;
    ws_request_respond(r, 403, "text/plain", NULL, "no", 2);
    return 0;
}

static void a_body_is_read_when_its_owner_wants_it(void **state)
{
    static const char head[] = "POST /v1 HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc",
                      word[] = "POST /v1 HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n";
    (void)state;
    restart(&(struct ws_server_config){.on_head = hold_up});
    dial();
    held = NULL;
    say(head, sizeof head - 1);
    WS_UNTIL(&f, held);
    say("def", 3);
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, 1);
    assert_string_equal(buf_str(&f.trace), "");
    ws_request_read(held);
    WS_UNTIL(&f, hear());
    assert_true(text_ends(buf_str(&got), "\r\n\r\nabcdef"));
    dial();
    held = NULL;
    say(word, sizeof word - 1);
    WS_UNTIL(&f, held);
    ws_request_read(held);
    WS_UNTIL(&f, !hear() && str_starts(buf_str(&got), "HTTP/1.1 100 "));
    say("abcdef", 6);
    WS_UNTIL(&f, hear());
    assert_true(text_ends(buf_str(&got), "\r\n\r\nabcdef"));
    restart(&(struct ws_server_config){.on_head = refuse_head});
    assert_true(str_starts(ask(word), "HTTP/1.1 403 "));
    assert_true(str_starts(ask(head), "HTTP/1.1 403 "));
    assert_string_equal(buf_str(&f.trace), "");
}

static void who_waits_for_a_word_gets_it(void **state)
{
    (void)state;
    static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    dial();
    say(head, sizeof head - 1);
    WS_UNTIL(&f, (hear(), got.len));
    assert_string_equal(buf_str(&got), "HTTP/1.1 100 Continue\r\n\r\n");
    say("ok", 2);
    WS_UNTIL(&f, hear());
    assert_true(text_ends(buf_str(&got), "\r\n\r\nok"));
}

static void a_client_that_hangs_up_is_noticed(void **state)
{
    (void)state;
    static const char requests[] = "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n";
    restart(&(struct ws_server_config){.ping_ms = 40});
    f.hold_requests = true;
    dial();
    say(requests, sizeof requests - 1);
    WS_UNTIL(&f, f.request);
    for (int i = 0; i < 100; i++)
        loop_run_once(f.loop, 2);
    assert_non_null(f.request); // it waits as long as it is there
    close(fd);
    fd = -1;
    WS_UNTIL(&f, !f.request);
    assert_string_equal(buf_str(&f.trace), "GET /a - 0\ngone\n");
    WS_UNTIL(&f, ws_server_counters(f.server)->connections == 0);
}

static void an_answer_that_is_not_taken_is_given_up(void **state)
{
    (void)state;
    static char answer[16 << 20];
    restart(&(struct ws_server_config){.ping_ms = 40});
    f.hold_requests = true;
    dial();
    say("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", 29);
    WS_UNTIL(&f, f.request);
    ws_request_respond(f.request, 200, "text/plain", NULL, answer, sizeof answer);
    WS_UNTIL(&f, ws_server_counters(f.server)->connections == 0);
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
}

// A Unix socket that is full and was hung up is never writable, and wakes the loop all the time.
static void an_answer_that_is_not_taken_on_a_unix_socket_is_given_up(void **state)
{
    (void)state;
    enum { TURNS = 1000 };
    static char answer[1 << 20];
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    char address[64];
    snprintf(sa.sun_path, sizeof sa.sun_path, "/tmp/cadre-test-http-%d.sock", (int)getpid());
    snprintf(address, sizeof address, "unix:/tmp/cadre-test-http-%d.sock", (int)getpid());
    ws_fixture_stop(&f);
    ws_fixture_start(&f, &(struct ws_server_config){.ping_ms = 40});
    ws_fixture_listen(&f, address, false);
    f.hold_requests = true;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    say("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", 29);
    WS_UNTIL(&f, f.request);
    ws_request_respond(f.request, 200, "text/plain", NULL, answer, sizeof answer);
    WS_UNTIL(&f, ws_server_counters(f.server)->silent == 1);
    for (int i = 0; i < TURNS && ws_server_counters(f.server)->connections; i++)
        loop_run_once(f.loop, 100);
    assert_int_equal(ws_server_counters(f.server)->connections, 0);
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
}

// A client that takes some of it between any two looks at it is not silent.
static void an_answer_that_is_taken_too_slowly_is_given_up(void **state)
{
    (void)state;
    enum { ANSWER = 64 << 20 };
    char *answer = calloc(1, ANSWER), piece[4096];
    restart(&(struct ws_server_config){.max_total = 2 * (size_t)ANSWER, .ping_ms = 3600 * 1000});
    f.hold_requests = true;
    dial();
    say("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", 29);
    WS_UNTIL(&f, f.request);
    struct ws_request *r = f.request;
    ws_request_respond(r, 200, "text/plain", NULL, answer, ANSWER);
    for (int i = 0; i < 180; i++) {
        size_t sent = r->sent;
        while (r->sent == sent) {
            if (recv(fd, piece, sizeof piece, MSG_DONTWAIT) < 0)
                assert_int_equal(errno, EAGAIN);
            loop_run_once(f.loop, 1);
        }
        ws_request_sweep(r);
        assert_int_equal(ws_server_counters(f.server)->silent, 0);
    }
    ws_request_sweep(r);
    assert_int_equal(ws_server_counters(f.server)->silent, 1);
    WS_UNTIL(&f, ws_server_counters(f.server)->connections == 0);
    free(answer);
}

static void a_short_answer_needs_no_room(void **state)
{
    (void)state;
    static char answer[4000];
    restart(&(struct ws_server_config){.max_total = 3000});
    f.hold_requests = true;
    dial();
    say("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", 29);
    WS_UNTIL(&f, f.request);
    ws_request_respond(f.request, 200, "text/plain", NULL, answer, sizeof answer);
    WS_UNTIL(&f, hear());
    assert_true(str_starts(buf_str(&got), "HTTP/1.1 200 "));
}

static void an_answer_without_room_is_a_503(void **state)
{
    (void)state;
    static char answer[5000];
    restart(&(struct ws_server_config){.max_total = 3000});
    f.hold_requests = true;
    dial();
    say("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", 29);
    WS_UNTIL(&f, f.request);
    ws_request_respond(f.request, 200, "text/plain", "X: y\r\n", answer, sizeof answer);
    WS_UNTIL(&f, hear());
    assert_true(str_starts(buf_str(&got), "HTTP/1.1 503 "));
    assert_true(text_ends(buf_str(&got), "the call ran, but there is no memory for the answer\n"));
}

static void who_has_not_begun_does_not_hold_up_the_end(void **state)
{
    (void)state;
    f.hold_requests = true;
    dial();
    int idle = fd;
    fd = -1;
    dial();
    int begun = fd;
    fd = -1;
    assert_int_equal(send(begun, "POST / HTTP/1.1\r\nHo", 19, MSG_NOSIGNAL), 19);
    dial();
    say("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", 29);
    WS_UNTIL(&f, f.request && ws_server_counters(f.server)->connections == 2); // the idle one is not among them
    ws_server_stop_listening(f.server);
    WS_UNTIL(&f, ws_server_counters(f.server)->connections == 1);
    ws_request_respond(f.request, 200, "text/plain", NULL, "ok", 2); // what was asked for is answered
    WS_UNTIL(&f, hear());
    assert_true(text_ends(buf_str(&got), "\r\n\r\nok"));
    close(idle);
    close(begun);
}

#define UPGRADE                                                                                               \
    "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: cadre.v1\r\n\r\n"

static void upgrade(void)
{
    dial();
    say(UPGRADE, sizeof UPGRADE - 1);
    WS_UNTIL(&f, (hear(), handshake_head_len(buf_str(&got), got.len)));
    assert_true(str_starts(buf_str(&got), "HTTP/1.1 101 "));
    assert_non_null(strstr(buf_str(&got), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    buf_reset(&got);
}

static void another_version_of_websocket_is_refused(void **state)
{
    (void)state;
    const char *answer = ask("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                             "Sec-WebSocket-Protocol: cadre.v1\r\n\r\n");
    assert_true(str_starts(answer, "HTTP/1.1 426 "));
    assert_non_null(strstr(answer, "Sec-WebSocket-Version: 13\r\n"));
}

static void http_1_0_cannot_be_upgraded(void **state)
{
    (void)state;
    const char *answer = ask("GET / HTTP/1.0\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                             "Sec-WebSocket-Protocol: cadre.v1\r\n\r\n");
    assert_true(str_starts(answer, "HTTP/1.1 400 "));
    assert_non_null(strstr(answer, "needs HTTP/1.1"));
}

static void broken_frames_end_the_session(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        unsigned code;
    } frames[] = {
        {"\xc2\x80zzzz", 6, 1002},         // extension bits
        {"\x83\x80zzzz", 6, 1002},         // unknown opcode
        {"\x80\x80zzzz", 6, 1002},         // continuation of nothing
        {"\x09\x80zzzz", 6, 1002},         // ping in fragments
        {"\x81\x81\0\0\0\0\xff", 7, 1007}, // not UTF-8
    };
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        upgrade();
        say(frames[i].bytes, frames[i].len);
        WS_UNTIL(&f, (hear(), got.len >= 4));
        close(fd); // else it waits for our close frame
        fd = -1;
        WS_UNTIL(&f, !f.session);
        assert_int_equal((uint8_t)got.data[0], 0x88);
        assert_int_equal((uint8_t)got.data[2] << 8 | (uint8_t)got.data[3], frames[i].code);
    }
}

static void pings_are_answered_and_fragments_put_together(void **state)
{
    (void)state;
    upgrade();
    say("\x01\x82\0\0\0\0He\x89\x81\0\0\0\0p\x80\x83\0\0\0\0llo", 24);
    WS_UNTIL(&f, (hear(), got.len >= 10));
    assert_memory_equal(got.data, "\x8a\x01p", 3);
    assert_memory_equal(got.data + 3, "\x81\x05Hello", 7);
}

// In so few turns it would not be asked again, however long they take.
static void who_has_answered_while_the_loop_stood_still_is_not_cut(void **state)
{
    enum { PING_MS = 100 };
    (void)state;
    do { // until the turn that asks is not itself too slow
        restart(&(struct ws_server_config){.ping_ms = PING_MS});
        upgrade();
        WS_UNTIL(&f, (hear(), got.len >= 3));
        assert_memory_equal(got.data, "\x89\x01?", 3);
    } while (ws_server_counters(f.server)->silent);
    say("\x8a\x80\0\0\0\0", 6);
    usleep(2 * PING_MS * 1000);
    for (int turn = 0; turn < 3; turn++)
        loop_run_once(f.loop, 0);
    assert_int_equal(ws_server_counters(f.server)->silent, 0);
}

static void frames_glued_to_the_handshake_do_no_harm(void **state)
{
    (void)state;
    dial();
    say(UPGRADE "\x81\x82\0\0\0\0Hi\x81\x82\0\0\0\0Hi", sizeof UPGRADE - 1 + 16);
    WS_UNTIL(&f, (hear(), handshake_head_len(buf_str(&got), got.len)));
    close(fd);
    fd = -1;
    WS_UNTIL(&f, ws_server_counters(f.server)->connections == 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_get_is_answered),
        T(a_post_gets_its_body_back),
        T(a_body_may_come_in_pieces),
        T(what_is_wrong_with_a_request_is_said),
        T(an_answer_may_take_its_time),
        T(a_request_held_at_the_end_of_the_server_is_no_leak),
        T(garbage_ends_only_its_own_connection),
        T(long_headers_are_told_so),
        T(endless_headers_are_bounded),
        T(a_request_that_does_not_come_in_is_given_up),
        T(bodies_that_come_in_are_bounded_together),
        T(a_body_is_read_when_its_owner_wants_it),
        T(who_waits_for_a_word_gets_it),
        T(a_client_that_hangs_up_is_noticed),
        T(an_answer_that_is_not_taken_is_given_up),
        T(an_answer_that_is_not_taken_on_a_unix_socket_is_given_up),
        T(an_answer_that_is_taken_too_slowly_is_given_up),
        T(a_short_answer_needs_no_room),
        T(an_answer_without_room_is_a_503),
        T(who_has_not_begun_does_not_hold_up_the_end),
        T(another_version_of_websocket_is_refused),
        T(http_1_0_cannot_be_upgraded),
        T(broken_frames_end_the_session),
        T(pings_are_answered_and_fragments_put_together),
        T(who_has_answered_while_the_loop_stood_still_is_not_cut),
        T(frames_glued_to_the_handshake_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
