// SPDX-License-Identifier: Apache-2.0
// What a client without TLS sends after its handshake, byte by byte: our own codec reads it, past libwebsockets.
#include "tests/unit/ws_fixture.h"

#include "common/base/mem.h"
#include "common/wire/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG ((size_t)1 << 20)

static struct ws_fixture f;
static struct buf got; // what came after the answer to the handshake
static int fd = -1;
static bool ended;
static char *place;   // where the bytes of a long message may go
static size_t placed; // how many came to lie there

static char *on_place(void *ctx, struct ws_session *s, size_t *ret_room)
{
    (void)ctx, (void)s;
    *ret_room = place ? LONG - placed : 0;
    return place ? place + placed : NULL;
}

static void on_data(void *ctx, struct ws_session *s, const char *data, size_t len, bool end)
{
    (void)ctx, (void)s, (void)end;
    if (place && data == place + placed)
        placed += len;
    buf_printf(&f.trace, end ? "data, the end\n" : "");
}

static void start(const struct ws_server_config *config)
{
    ws_fixture_start(&f, config);
    ws_fixture_listen(&f, "127.0.0.1:0", false);
}

static int setup(void **state)
{
    (void)state;
    got = BUF_INIT(4 << 20);
    ended = false;
    place = NULL;
    placed = 0;
    start(&(struct ws_server_config){.max_message = 2 * LONG});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (fd >= 0)
        close(fd);
    fd = -1;
    buf_done(&got);
    ws_fixture_stop(&f);
    return 0;
}

static void say(const void *data, size_t len)
{
    const char *at = data;
    while (len) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            assert_int_equal(errno, EAGAIN);
        at += MAX(n, (ssize_t)0);
        len -= (size_t)MAX(n, (ssize_t)0);
        loop_run_once(f.loop, 0);
    }
}

static size_t hear(void)
{
    char piece[4096];
    ssize_t n;
    while ((n = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) > 0)
        buf_append(&got, piece, (size_t)n);
    ended = ended || n == 0 || errno != EAGAIN;
    return got.len;
}

#define REQUEST                                                                    \
    "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"   \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
    "Sec-WebSocket-Protocol: cadre.v1\r\n\r\n"

static void shake_hands_with(const char *request, size_t len)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f.port)};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    say(request, len);
    WS_UNTIL(&f, hear() && strstr(buf_str(&got), "\r\n\r\n"));
}

static void shake_hands(void)
{
    shake_hands_with(REQUEST, sizeof REQUEST - 1);
    buf_reset(&got);
}

// A frame as a client sends it; to be freed.
static char *frame(enum frame_opcode opcode, const void *payload, size_t len, size_t *ret_len)
{
    static const uint8_t key[4] = {1, 200, 3, 40};
    char *out = xmalloc(FRAME_HEADER_MAX + len);
    size_t head = frame_header_encode(out, true, opcode, len, key);
    if (len)
        memcpy(out + head, payload, len);
    frame_mask(out + head, len, key, 0);
    *ret_len = head + len;
    return out;
}

static void say_frame(enum frame_opcode opcode, const void *payload, size_t len)
{
    size_t size;
    _cleanup_(free_p) char *bytes = frame(opcode, payload, len, &size);
    say(bytes, size);
}

static bool seen(const char *text)
{
    return strstr(buf_str(&f.trace), text) != NULL;
}

static void a_message_may_come_byte_by_byte(void **state)
{
    (void)state;
    size_t size;
    _cleanup_(free_p) char *bytes = frame(FRAME_TEXT, "hello", 5, &size);
    shake_hands();
    for (size_t i = 0; i < size; i++)
        say(bytes + i, 1);
    WS_UNTIL(&f, hear() == 7);
    assert_memory_equal(got.data, "\x81\x05hello", 7);
    assert_int_equal(ws_server_counters(f.server)->messages_in, 1);
    assert_int_equal(ws_server_counters(f.server)->bytes_in, 5);
}

static void several_messages_may_come_at_once(void **state)
{
    (void)state;
    char all[64];
    size_t used = 0;
    for (int i = 0; i < 3; i++) {
        size_t size;
        _cleanup_(free_p) char *bytes = frame(FRAME_BINARY, &"abc"[i], 1, &size);
        memcpy(all + used, bytes, size);
        used += size;
    }
    shake_hands();
    say(all, used);
    WS_UNTIL(&f, hear() == 9);
    assert_memory_equal(got.data,
                        "\x82\x01"
                        "a\x82\x01"
                        "b\x82\x01"
                        "c",
                        9);
}

static void a_ping_is_answered_with_what_it_had(void **state)
{
    (void)state;
    shake_hands();
    say_frame(FRAME_PING, "are you there", 13);
    WS_UNTIL(&f, hear() == 15);
    assert_memory_equal(got.data,
                        "\x8a\x0d"
                        "are you there",
                        15);
    buf_reset(&got);
    say_frame(FRAME_PING, "", 0);
    WS_UNTIL(&f, hear() == 2);
    assert_memory_equal(got.data, "\x8a\x00", 2);
}

static void a_close_is_answered_and_told_with_its_code(void **state)
{
    (void)state;
    shake_hands();
    say_frame(FRAME_CLOSE, "\x03\xf4later", 7); // 1012, which libwebsockets does not know
    WS_UNTIL(&f, (hear(), ended) && seen("close"));
    assert_true(seen("close 1012 later\n"));
    assert_int_equal(got.len, 9);
    assert_memory_equal(got.data, "\x88\x07\x03\xf4later", 9);
}

static void a_close_may_be_without_a_code(void **state)
{
    (void)state;
    shake_hands();
    say_frame(FRAME_CLOSE, "", 0);
    WS_UNTIL(&f, (hear(), ended) && seen("close"));
    assert_true(seen("close 1005"));
    assert_int_equal(got.len, 2);
    assert_memory_equal(got.data, "\x88\x00", 2);
}

static void what_waits_is_not_sent_after_the_close_of_the_peer(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    shake_hands();
    say_frame(FRAME_CLOSE, "\x03\xe8", 2);
    WS_UNTIL(&f, hear() == 4 || ended);
    if (f.session)
        assert_int_equal(ws_session_message(f.session, true, "x", 1, &err), ERR_GONE);
    WS_UNTIL(&f, (hear(), ended) && seen("close 1000"));
    assert_int_equal(got.len, 4);
}

static void a_frame_without_a_mask_is_refused(void **state)
{
    (void)state;
    shake_hands();
    say("\x81\x01x", 3);
    WS_UNTIL(&f, hear() >= 4);
    assert_memory_equal(got.data + 2, "\x03\xea", 2); // 1002
    WS_UNTIL(&f, seen("close 1002"));
    assert_false(seen("message"));
}

// Whether it has answered the handshake, and then closed for a breach of the protocol.
static bool closes_for_a_breach(void)
{
    const char *end = hear() ? strstr(buf_str(&got), "\r\n\r\n") : NULL;
    return end && got.data + got.len - end >= 8 && memcmp(end + 4, "\x88", 1) == 0 &&
           memcmp(end + 6, "\x03\xea", 2) == 0;
}

static void a_frame_that_comes_with_the_handshake_is_refused_and_not_lost(void **state)
{
    (void)state;
    static const char early[] = REQUEST "\x81\x82\0\0\0\0Hi";
    shake_hands_with(early, sizeof early - 1);
    WS_UNTIL(&f, closes_for_a_breach());
    assert_false(seen("message"));
}

static void a_part_of_a_frame_that_comes_with_the_handshake_is_refused_with_the_rest(void **state)
{
    (void)state;
    static const char early[] = REQUEST "\x81\x82\0\0\0\0H";
    shake_hands_with(early, sizeof early - 1);
    say("i", 1);
    WS_UNTIL(&f, closes_for_a_breach());
    assert_false(seen("message"));
}

static void a_close_that_comes_with_the_handshake_is_answered(void **state)
{
    (void)state;
    static const char early[] = REQUEST "\x88\x82\0\0\0\0\x03\xe8";
    shake_hands_with(early, sizeof early - 1);
    WS_UNTIL(&f, (hear(), ended) && seen("close 1000"));
}

static void after_a_breach_the_server_ends_the_connection_first(void **state)
{
    (void)state;
    shake_hands();
    say("\x81\x01x", 3);
    WS_UNTIL(&f, (hear(), ended));
    assert_memory_equal(got.data + 2, "\x03\xea", 2);
    assert_non_null(f.session); // it waits for the peer to end it, too
    close(fd);
    fd = -1;
    WS_UNTIL(&f, seen("close 1002"));
}

static void text_that_is_no_utf8_is_refused(void **state)
{
    (void)state;
    shake_hands();
    say_frame(FRAME_TEXT, "\xff", 1);
    WS_UNTIL(&f, hear() >= 4);
    assert_memory_equal(got.data + 2, "\x03\xef", 2); // 1007
    WS_UNTIL(&f, seen("close 1007"));
}

static void a_peer_that_hangs_up_is_noticed(void **state)
{
    (void)state;
    shake_hands();
    close(fd);
    fd = -1;
    WS_UNTIL(&f, seen("close 1006"));
}

static void who_is_paused_is_not_read(void **state)
{
    (void)state;
    shake_hands();
    ws_session_pause(f.session);
    say_frame(FRAME_TEXT, "hello", 5);
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, 1);
    assert_false(seen("message"));
    ws_session_resume(f.session);
    WS_UNTIL(&f, seen("message text 5"));
}

static void a_long_message_is_read_to_where_it_belongs(void **state)
{
    (void)state;
    _cleanup_(free_p) char *body = xmalloc(LONG), *to = xcalloc(1, LONG);
    for (size_t i = 0; i < LONG; i++)
        body[i] = (char)(i * 7 + i / 251);
    ws_fixture_stop(&f);
    start(&(struct ws_server_config){.on_place = on_place, .on_data = on_data});
    shake_hands();
    size_t size;
    _cleanup_(free_p) char *bytes = frame(FRAME_BINARY, body, LONG, &size);
    say(bytes, size - LONG + 100); // so that the server knows how long it is
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, 1);
    place = to;
    say(bytes + size - LONG + 100, LONG - 100);
    WS_UNTIL(&f, seen("data, the end"));
    assert_int_equal(placed, LONG - 100);
    assert_memory_equal(to, body + 100, LONG - 100);
}

static unsigned count(const char *text)
{
    unsigned n = 0;
    for (const char *at = buf_str(&f.trace); (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void short_messages_are_read_in_waves_so_that_what_came_of_one_goes_out_before_the_next(void **state)
{
    (void)state;
    enum { LEN = 1000, N = 32 };
    char payload[LEN];
    struct buf all = BUF_INIT(1 << 20);
    shake_hands();
    memset(payload, 'a', sizeof payload);
    for (int i = 0; i < N; i++) {
        size_t size;
        _cleanup_(free_p) char *bytes = frame(FRAME_TEXT, payload, LEN, &size);
        buf_append(&all, bytes, size);
    }
    say(all.data, all.len); // with one turn, as the socket takes all of it
    assert_in_range(count("message text 1000"), 1, WS_WAVE / LEN);
    WS_UNTIL(&f, count("message text 1000") == N);
    buf_done(&all);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_message_may_come_byte_by_byte),
        T(several_messages_may_come_at_once),
        T(a_ping_is_answered_with_what_it_had),
        T(a_close_is_answered_and_told_with_its_code),
        T(a_close_may_be_without_a_code),
        T(what_waits_is_not_sent_after_the_close_of_the_peer),
        T(a_frame_without_a_mask_is_refused),
        T(a_frame_that_comes_with_the_handshake_is_refused_and_not_lost),
        T(a_part_of_a_frame_that_comes_with_the_handshake_is_refused_with_the_rest),
        T(a_close_that_comes_with_the_handshake_is_answered),
        T(after_a_breach_the_server_ends_the_connection_first),
        T(text_that_is_no_utf8_is_refused),
        T(a_peer_that_hangs_up_is_noticed),
        T(who_is_paused_is_not_read),
        T(a_long_message_is_read_to_where_it_belongs),
        T(short_messages_are_read_in_waves_so_that_what_came_of_one_goes_out_before_the_next),
    };
    return cmocka_run_group_tests_name("ws_receive", tests, NULL, NULL);
}
