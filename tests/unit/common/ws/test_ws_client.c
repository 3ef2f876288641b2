// SPDX-License-Identifier: Apache-2.0
// The client against a server that the test speaks for, byte by byte.
#include "common/ws/ws_client.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/wire/frame.h"
#include "common/ws/ws_client_config.h"
#include "common/ws/ws_silence.h"
#include "tests/unit/support/patience.h"
#include "tests/unit/support/text_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct loop *loop;
static struct ws_client *client;
static int listener, peer; // peer: our end of the client's connection, -1 until it comes
static char address[64];
static struct buf got;   // what the client sent, bytes
static struct buf heard; // what it told of, words
static unsigned closed;  // code; 0 = not yet
static struct err close_err;

static void on_open(void *ctx, const char *subprotocol)
{
    (void)ctx;
    buf_printf(&heard, "open(%s) ", subprotocol);
}

static void on_message(void *ctx, bool text, const char *data, size_t len)
{
    (void)ctx;
    buf_printf(&heard, "%s(%.*s) ", text ? "text" : "binary", (int)len, data);
}

static void on_close(void *ctx, unsigned code, const char *reason, const struct err *err)
{
    (void)ctx;
    closed = code;
    close_err = *err;
    buf_printf(&heard, "close(%u %s) ", code, reason);
}

static int setup(void **state)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    (void)state;
    loop = loop_new();
    got = heard = BUF_INIT(1 << 20);
    closed = 0;
    close_err = ERR_INIT;
    peer = -1;
    client = NULL;
    snprintf(address, sizeof address, "unix:/tmp/cadre-test-client-%d.sock", (int)getpid());
    memcpy(sa.sun_path, address + 5, strlen(address + 5) + 1);
    unlink(sa.sun_path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return bind(listener, (struct sockaddr *)&sa, sizeof sa) < 0 || listen(listener, 1) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    ws_client_free(client);
    loop_free(loop);
    if (peer >= 0)
        close(peer);
    close(listener);
    unlink(address + 5);
    buf_done(&got);
    buf_done(&heard);
    return 0;
}

static void hear(void)
{
    char piece[4096];
    if (peer < 0)
        peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (ssize_t n; peer >= 0 && (n = recv(peer, piece, sizeof piece, 0)) > 0;)
        buf_append(&got, piece, (size_t)n);
}

static void turn(void)
{
    loop_run_once(loop, 20);
    hear();
}

#define UNTIL(condition) TURN_UNTIL(turn(), condition, buf_str(&heard))

static void say(const void *data, size_t len)
{
    assert_int_equal(send(peer, data, len, MSG_NOSIGNAL), len);
}

static void say_text(const char *text)
{
    say(text, strlen(text));
}

static void dial(struct ws_client_config config)
{
    struct err err = ERR_INIT;
    config.address = address;
    config.subprotocols = "cadre.v1";
    config.on_open = on_open;
    config.on_message = on_message;
    config.on_close = on_close;
    client = ws_client_new(loop, &config, &err);
    if (!client)
        fail_msg("%s", err.msg);
}

// Answers the handshake, with something behind it.
static void accept_with(const void *behind, size_t len)
{
    char accept[HANDSHAKE_ACCEPT_SIZE], key[HANDSHAKE_KEY_SIZE] = "";
    struct buf answer = BUF_INIT(4096);
    UNTIL(handshake_head_len(buf_str(&got), got.len));
    const char *at = strstr(buf_str(&got), "Sec-WebSocket-Key: ");
    assert_non_null(at);
    memcpy(key, at + strlen("Sec-WebSocket-Key: "), HANDSHAKE_KEY_SIZE - 1);
    handshake_accept(key, accept);
    buf_printf(&answer,
               "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: cadre.v1\r\n\r\n",
               accept);
    buf_append(&answer, behind, len);
    say(answer.data, answer.len);
    buf_done(&answer);
    buf_reset(&got);
}

static void frames_behind_the_answer_are_not_lost(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("\x81\x02Hi\x82\x02yo", 8);
    UNTIL(strstr(buf_str(&heard), "yo"));
    assert_string_equal(buf_str(&heard), "open(cadre.v1) text(Hi) binary(yo) ");
}

static bool got_ends(const char *text)
{
    size_t len = strlen(text);
    return got.len >= len && memcmp(got.data + got.len - len, text, len) == 0;
}

static void what_is_queued_goes_out_with_the_next_turn_or_a_flush(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    dial((struct ws_client_config){0});
    ws_client_flush(client); // there is no connection yet
    accept_with("\x82\x02yo", 4);
    UNTIL(strstr(buf_str(&heard), "yo"));
    assert_int_equal(ws_client_message(client, true, "first", 5, &err), 0);
    UNTIL(got_ends("first"));
    assert_int_equal(ws_client_message(client, true, "second", 6, &err), 0);
    ws_client_flush(client);
    ws_client_flush(client); // once is enough
    hear();
    assert_true(got_ends("second"));
    assert_int_not_equal(loop_timeout_ms(loop), 0); // nothing is left for the next turn
}

static int queue_record(uint32_t call)
{
    static const char body[64] = "{}";
    struct err err = ERR_INIT;
    const struct record_header h = {.type = RECORD_CALL, .call = call, .rank = RECORD_GROUP};
    return ws_client_record_copy(client, &h, body, sizeof body, &err);
}

static void a_wave_of_short_records_goes_out_before_the_turn(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("", 0);
    UNTIL(heard.len);
    uint32_t n = 0;
    assert_int_equal(queue_record(n++), 0);
    hear();
    assert_int_equal(got.len, 0);
    for (; !got.len && n < 1000; hear())
        assert_int_equal(queue_record(n++), 0);
    assert_in_range(n, 10, 999);
    assert_int_equal(ws_client_queued(client), 0);
}

static void a_wave_that_cannot_be_written_ends_the_connection_in_the_turn_and_not_before(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("", 0);
    UNTIL(heard.len);
    close(peer);
    for (uint32_t n = 0; n < 1000; n++)
        assert_int_equal(queue_record(n), 0);
    assert_int_equal(closed, 0);
    loop_run_once(loop, 0);
    assert_int_equal(closed, FRAME_CLOSE_ABNORMAL);
    peer = -1;
}

static void an_answer_may_come_byte_by_byte(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    UNTIL(handshake_head_len(buf_str(&got), got.len));
    static const char answer[] = "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nno!\n";
    for (size_t i = 0; i < sizeof answer - 1; i++) {
        say(answer + i, 1);
        loop_run_once(loop, 5);
    }
    UNTIL(closed);
    assert_int_equal(close_err.code, ERR_FORBIDDEN);
    assert_true(text_ends(close_err.msg, "403: no!"));
}

static void a_server_that_speaks_something_else_is_refused(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    UNTIL(got.len);
    say_text("SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n");
    UNTIL(closed);
    assert_int_equal(close_err.code, ERR_PROTO);
    assert_non_null(strstr(close_err.msg, "SSH-2.0"));
}

static void an_endless_answer_is_refused(void **state)
{
    (void)state;
    static char x[HANDSHAKE_HEAD_MAX + 1];
    memset(x, 'x', sizeof x);
    dial((struct ws_client_config){0});
    UNTIL(got.len);
    say(x, sizeof x);
    UNTIL(closed);
    assert_int_equal(close_err.code, ERR_LIMIT);
}

static void a_server_that_does_not_answer_is_given_up(void **state)
{
    (void)state;
    dial((struct ws_client_config){.open_ms = 30});
    UNTIL(closed);
    assert_int_equal(closed, FRAME_CLOSE_ABNORMAL);
    assert_int_equal(close_err.code, ERR_TIMEOUT);
    assert_non_null(strstr(close_err.msg, "waiting for the answer to the handshake"));
}

static void a_broken_frame_is_answered_with_its_code(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("\xff\x00", 2);
    UNTIL(got.len >= 8);
    assert_int_equal((uint8_t)got.data[0], 0x88);
    assert_int_equal((uint8_t)got.data[6] << 8 | (uint8_t)got.data[7], FRAME_CLOSE_PROTOCOL); // the mask is zero here
    say("\x82\x01x", 3); // is not listened to any more
    close(peer);
    peer = -1;
    UNTIL(closed);
    assert_int_equal(closed, FRAME_CLOSE_PROTOCOL);
    assert_int_equal(close_err.code, ERR_PROTO);
    assert_null(strstr(buf_str(&heard), "binary"));
}

static void a_peer_that_was_refused_and_goes_on_is_left(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("\xff\x00", 2);
    UNTIL(closed); // it never ends its side
    assert_int_equal(close_err.code, ERR_PROTO);
}

static void a_ping_is_answered(void **state)
{
    (void)state;
    dial((struct ws_client_config){.mask_always = true});
    accept_with("\x89\x03"
                "abc",
                5);
    UNTIL(got.len >= 9);
    assert_memory_equal(got.data, "\x8a\x83", 2);
    frame_mask(got.data + 6, 3, (uint8_t *)got.data + 2, 0);
    assert_memory_equal(got.data + 6, "abc", 3);
}

static void dial_again(struct ws_client_config config)
{
    ws_client_free(client);
    close(peer);
    peer = -1;
    buf_reset(&got);
    closed = 0;
    dial(config);
    accept_with("", 0);
}

static void silence_is_asked_about_and_then_given_up(void **state)
{
    (void)state;
    const struct ws_client_config config = {.ping_ms = 20, .pong_ms = 40};
    bool asked = false;
    dial(config);
    accept_with("", 0);
    for (int tries = 0; tries < 50 && !asked; tries++) { // a turn that is too slow gives up at once
        if (tries)
            dial_again(config);
        UNTIL(got.len >= 6 || closed);
        if (closed)
            continue;
        assert_memory_equal(got.data, "\x89\x80", 2);
        say("\x8a\x00", 2); // lives
        buf_reset(&got);
        UNTIL(got.len >= 6 || closed);
        asked = got.len >= 6; // silent again
    }
    assert_true(asked);
    UNTIL(closed);
    assert_int_equal(close_err.code, ERR_TIMEOUT);
    assert_non_null(strstr(close_err.msg, "no answer to a ping"));
}

static int64_t default_ping_ms(const char *to)
{
    struct ws_client_config config = ws_client_config_copy(&(struct ws_client_config){.address = to});
    int64_t ms = config.ping_ms;
    ws_client_config_done(&config);
    return ms;
}

static void a_server_on_the_same_host_is_not_asked_while_nobody_waits(void **state)
{
    (void)state;
    assert_int_equal(default_ping_ms("unix:/run/socket"), WS_SILENCE_NEVER_MS);
    assert_int_equal(default_ping_ms("operator:9443"), 60000);
}

static void a_slow_turn_of_our_own_is_not_the_peers_silence(void **state)
{
    (void)state;
    dial((struct ws_client_config){.ping_ms = 20, .pong_ms = 20});
    accept_with("", 0);
    UNTIL(got.len >= 6); // asked
    while (closed) {     // the turn that asked was itself too slow
        dial_again((struct ws_client_config){.ping_ms = 20, .pong_ms = 20});
        UNTIL(got.len >= 6 || closed);
    }
    say("\x8a\x00", 2); // and answered, while the loop stands still
    usleep(60000);      // for longer than the peer is given
    loop_run_once(loop, 1);
    assert_int_equal(closed, 0);
}

static void the_close_of_a_server_is_answered(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("\x88\x06\x03\xf0"
                "nope\x82\x01x",
                11);
    UNTIL(closed);
    assert_int_equal(closed, FRAME_CLOSE_POLICY);
    assert_int_equal(close_err.code, 0);
    UNTIL(got.len >= 12);
    assert_memory_equal(got.data, "\x88\x86\0\0\0\0\x03\xf0nope", 12);
    assert_string_equal(buf_str(&heard), "open(cadre.v1) close(1008 nope) ");
}

static void a_close_without_a_code_is_answered_without_one(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("\x88\x00", 2);
    UNTIL(closed);
    assert_int_equal(closed, FRAME_CLOSE_NO_CODE);
    UNTIL(got.len >= 6);
    assert_int_equal(got.len, 6);
}

static void the_end_of_the_stream_is_an_error(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("\x82\x05half", 6);
    UNTIL(heard.len);
    shutdown(peer, SHUT_WR);
    UNTIL(closed);
    assert_int_equal(closed, FRAME_CLOSE_ABNORMAL);
    assert_int_equal(close_err.code, ERR_GONE);
}

static void why_a_server_hung_up_is_read_even_after_a_write_failed(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    dial((struct ws_client_config){0});
    accept_with("", 0);
    UNTIL(heard.len);
    ws_client_pause(client); // so that the write comes first
    say("\x88\x05\x03\xf0who", 7);
    shutdown(peer, SHUT_RDWR);
    assert_int_equal(ws_client_message(client, true, "x", 1, &err), 0);
    ws_client_resume(client);
    UNTIL(closed);
    assert_int_equal(closed, FRAME_CLOSE_POLICY);
}

static void nothing_is_handed_out_while_paused_even_what_was_read(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("", 0);
    UNTIL(heard.len);
    ws_client_pause(client);
    say("\x81\x01"
        "a\x81\x01"
        "b",
        6);
    for (int i = 0; i < 10; i++)
        loop_run_once(loop, 1);
    assert_string_equal(buf_str(&heard), "open(cadre.v1) ");
    ws_client_resume(client);
    UNTIL(strstr(buf_str(&heard), "text(b)"));
    assert_string_equal(buf_str(&heard), "open(cadre.v1) text(a) text(b) ");
}

static void pause_between_two(void *ctx, bool text, const char *data, size_t len)
{
    on_message(ctx, text, data, len);
    ws_client_pause(client);
}

static void a_pause_takes_effect_between_two_messages_of_one_read(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    client = ws_client_new(loop,
                           &(struct ws_client_config){.address = address,
                                                      .subprotocols = "cadre.v1",
                                                      .on_open = on_open,
                                                      .on_message = pause_between_two,
                                                      .on_close = on_close},
                           &err);
    accept_with("\x81\x01"
                "a\x81\x01"
                "b\x81\x01"
                "c",
                9);
    UNTIL(strstr(buf_str(&heard), "text(a)"));
    assert_string_equal(buf_str(&heard), "open(cadre.v1) text(a) ");
    ws_client_resume(client);
    UNTIL(strstr(buf_str(&heard), "text(b)"));
    assert_null(strstr(buf_str(&heard), "text(c)"));
    ws_client_resume(client);
    UNTIL(strstr(buf_str(&heard), "text(c)"));
}

static void a_client_closes_even_when_nobody_answers(void **state)
{
    (void)state;
    dial((struct ws_client_config){0});
    accept_with("", 0);
    UNTIL(heard.len);
    ws_client_close(client, FRAME_CLOSE_NORMAL, "done");
    UNTIL(got.len >= 12);
    assert_memory_equal(got.data,
                        "\x88\x86\0\0\0\0\x03\xe8"
                        "done",
                        12);
    shutdown(peer, SHUT_WR); // no close frame, just the end
    UNTIL(closed);
    assert_int_equal(closed, FRAME_CLOSE_NORMAL);
    assert_int_equal(close_err.code, 0);
}

static unsigned count(const char *text)
{
    unsigned n = 0;
    for (const char *at = buf_str(&heard); (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void short_messages_are_read_in_waves_so_that_what_came_of_one_goes_out_before_the_next(void **state)
{
    (void)state;
    enum { LEN = 100, N = 640 };
    char bytes[2 + LEN] = "\x81\x64";
    struct buf all = BUF_INIT(1 << 20);
    dial((struct ws_client_config){0});
    accept_with("", 0);
    UNTIL(heard.len);
    memset(bytes + 2, 'a', LEN);
    for (int i = 0; i < N; i++)
        buf_append(&all, bytes, sizeof bytes);
    say(all.data, all.len);
    loop_run_once(loop, 0);
    assert_in_range(count("text("), 1, WS_WAVE / LEN);
    UNTIL(count("text(") == N);
    buf_done(&all);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(frames_behind_the_answer_are_not_lost),
        T(what_is_queued_goes_out_with_the_next_turn_or_a_flush),
        T(a_wave_of_short_records_goes_out_before_the_turn),
        T(a_wave_that_cannot_be_written_ends_the_connection_in_the_turn_and_not_before),
        T(an_answer_may_come_byte_by_byte),
        T(a_server_that_speaks_something_else_is_refused),
        T(an_endless_answer_is_refused),
        T(a_server_that_does_not_answer_is_given_up),
        T(a_broken_frame_is_answered_with_its_code),
        T(a_peer_that_was_refused_and_goes_on_is_left),
        T(a_ping_is_answered),
        T(silence_is_asked_about_and_then_given_up),
        T(a_server_on_the_same_host_is_not_asked_while_nobody_waits),
        T(a_slow_turn_of_our_own_is_not_the_peers_silence),
        T(the_close_of_a_server_is_answered),
        T(a_close_without_a_code_is_answered_without_one),
        T(the_end_of_the_stream_is_an_error),
        T(why_a_server_hung_up_is_read_even_after_a_write_failed),
        T(nothing_is_handed_out_while_paused_even_what_was_read),
        T(a_pause_takes_effect_between_two_messages_of_one_read),
        T(a_client_closes_even_when_nobody_answers),
        T(short_messages_are_read_in_waves_so_that_what_came_of_one_goes_out_before_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
