// SPDX-License-Identifier: Apache-2.0
// Bytes of a client after its handshake, without TLS and with it. The same codec reads both, past libwebsockets.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"
#include "common/wire/frame.h"
#include "common/ws/ws_tls.h"
#include "tests/unit/support/session_say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG ((size_t)1 << 20)

static struct ws_fixture f;
static struct buf got; // what came after the answer to the handshake
static int fd = -1;
static struct certs certs;
static bool over_tls;
static struct ws_tls *tls;
static struct ws_tls_stream *stream; // NULL: without TLS
static bool ended;
static char *buffer;  // where the bytes of a long message may go
static size_t filled; // how many came to lie there

static char *on_buffer(void *ctx, struct ws_session *s, size_t *ret_room)
{
    (void)ctx, (void)s;
    *ret_room = buffer ? LONG - filled : 0;
    return buffer ? buffer + filled : NULL;
}

static void on_data(void *ctx, struct ws_session *s, const char *data, size_t len, bool end)
{
    (void)ctx, (void)s, (void)end;
    if (buffer && data == buffer + filled)
        filled += len;
    buf_printf(&f.trace, end ? "data, the end\n" : "");
}

static void start(struct ws_server_config config)
{
    config.cert_pem = certs.server_cert;
    config.key_pem = certs.server_key;
    ws_fixture_start(&f, &config);
    ws_fixture_listen(&f, "127.0.0.1:0", over_tls);
}

static int setup(void **state)
{
    (void)state;
    got = BUF_INIT(4 << 20);
    ended = false;
    buffer = NULL;
    filled = 0;
    start((struct ws_server_config){.max_message = 2 * LONG});
    return 0;
}

static void hang_up(void)
{
    ws_tls_stream_free(TAKE_PTR(stream));
    if (fd >= 0)
        close(fd);
    fd = -1;
}

static int teardown(void **state)
{
    (void)state;
    hang_up();
    buf_done(&got);
    ws_fixture_stop(&f);
    return 0;
}

// Bytes that the socket took.
static ssize_t put(const char *data, size_t len)
{
    struct err err = ERR_INIT;
    ssize_t n = stream ? ws_tls_stream_write(stream, data, len, &err) : send(fd, data, len, MSG_NOSIGNAL);
    if (n < 0 && !stream)
        assert_int_equal(errno, EAGAIN);
    assert_int_equal(err.code, 0);
    return MAX(n, (ssize_t)0);
}

// Bytes that came, 0 where there are none now, below 0 at the end.
static ssize_t take(char *to, size_t len)
{
    struct err err = ERR_INIT;
    if (stream)
        return ws_tls_stream_read(stream, to, len, &err);
    ssize_t n = recv(fd, to, len, 0);
    return n > 0 ? n : n < 0 && errno == EAGAIN ? 0 : -1;
}

static void say(const void *data, size_t len)
{
    const char *at = data;
    while (len) {
        ssize_t n = put(at, len);
        at += n;
        len -= (size_t)n;
        loop_run_once(f.loop, 0);
    }
}

static size_t hear(void)
{
    char piece[4096];
    ssize_t n;
    while (!ended && (n = take(piece, sizeof piece)) != 0) {
        ended = n < 0;
        if (n > 0)
            buf_append(&got, piece, (size_t)n);
    }
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
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    if (over_tls) {
        struct err err = ERR_INIT;
        int r = 0;
        stream = ws_tls_stream_new(tls, fd, "127.0.0.1", &err);
        WS_UNTIL(&f, (r = ws_tls_stream_handshake(stream, &err)) != 0);
        assert_int_equal(r, 1);
    }
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

static void a_server_with_little_to_do_sleeps_long(void **state)
{
    (void)state;
    int due;
    shake_hands();
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, 1);
    due = loop_timeout_ms(f.loop);
    assert_true(due < 0 || due > 5000); // one connection, which is asked once in 20 s
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
        assert_int_equal(session_say(f.session, true, "x", 1, &err), ERR_GONE);
    WS_UNTIL(&f, (hear(), ended) && seen("close 1000"));
    assert_int_equal(got.len, 4);
}

// RFC 6455: what a client must not send, and the code that the server closes with. Masks are zero.
static const struct {
    const char *section, *what, *bytes;
    size_t len;
    unsigned code;
} breaches[] = {
#define B(section, what, bytes, code)                 \
    {                                                 \
        section, what, bytes, sizeof(bytes) - 1, code \
    }
#define M "\0\0\0\0"
    B("5.1", "a frame without a mask", "\x81\x01x", 1002),
    B("5.1", "a ping without a mask", "\x89\x01x", 1002),
    B("5.2", "a reserved bit", "\xc1\x81" M "x", 1002),
    B("5.2", "another reserved bit", "\x91\x81" M "x", 1002),
    B("5.2", "a reserved opcode", "\x83\x81" M "x", 1002),
    B("5.2", "a reserved control opcode", "\x8b\x81" M "x", 1002),
    B("5.2", "a length of two bytes that fits into one", "\x81\xfe\0\x05" M "hello", 1002),
    B("5.2", "a length of eight bytes that fits into two", "\x81\xff\0\0\0\0\0\0\x01\0" M "hello", 1002),
    B("5.2", "a length over 2^63", "\x82\xff\xff\0\0\0\0\0\0\0" M, 1002),
    B("5.4", "a continuation of nothing", "\x80\x81" M "x", 1002),
    B("5.4", "a message within a message", "\x01\x81" M "x\x81\x81" M "y", 1002),
    B("5.4", "another kind within a message", "\x01\x81" M "x\x82\x81" M "y", 1002),
    B("5.5", "a ping in pieces", "\x09\x81" M "x", 1002),
    B("5.5", "a close frame in pieces", "\x08\x82" M "\x03\xe8", 1002),
    B("5.5", "a ping of more than 125 bytes", "\x89\xfe\0\x7e" M, 1002),
    B("5.5.1", "a close frame of one byte", "\x88\x81" M "\x03", 1002),
    B("5.5.1", "a reason that is not UTF-8", "\x88\x83" M "\x03\xe8\xff", 1007),
    B("7.4.2", "code 0", "\x88\x82" M "\0\0", 1002),
    B("7.4.2", "code 999", "\x88\x82" M "\x03\xe7", 1002),
    B("7.4.1", "code 1004", "\x88\x82" M "\x03\xec", 1002),
    B("7.4.1", "code 1005", "\x88\x82" M "\x03\xed", 1002),
    B("7.4.1", "code 1006", "\x88\x82" M "\x03\xee", 1002),
    B("7.4.1", "code 1015", "\x88\x82" M "\x03\xf7", 1002),
    B("7.4.2", "code 2999", "\x88\x82" M "\x0b\xb7", 1002),
    B("7.4.2", "code 5000", "\x88\x82" M "\x13\x88", 1002),
    B("7.4.2", "code 65535", "\x88\x82" M "\xff\xff", 1002),
    B("8.1", "text that is not UTF-8", "\x81\x81" M "\xff", 1007),
    B("8.1", "text that ends within a character", "\x81\x81" M "\xe2", 1007),
    B("8.1", "a surrogate", "\x81\x83" M "\xed\xa0\x80", 1007),
    B("8.1", "text in pieces that is not UTF-8", "\x01\x81" M "\xe2\x80\x81" M "x", 1007),
#undef M
#undef B
};

static void what_breaks_the_protocol_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(breaches); i++) {
        shake_hands();
        say(breaches[i].bytes, breaches[i].len);
        WS_UNTIL(&f, hear() >= 4 || ended);
        const uint8_t want[] = {0x88, got.len < 2 ? 0 : (uint8_t)got.data[1], (uint8_t)(breaches[i].code >> 8),
                                (uint8_t)breaches[i].code};
        if (got.len < 4 || memcmp(got.data, want, sizeof want) != 0)
            fail_msg("%s, %s: answered with %zu bytes, not with %u", breaches[i].section, breaches[i].what, got.len,
                     breaches[i].code);
        if (seen("message"))
            fail_msg("%s, %s: it is handed on", breaches[i].section, breaches[i].what);
        hang_up();
        WS_UNTIL(&f, !f.session);
        buf_reset(&f.trace);
        buf_reset(&got);
        ended = false;
    }
}

static void nothing_counts_behind_a_close_frame(void **state)
{
    (void)state;
    static const char late[] = "\x88\x82\0\0\0\0\x03\xe8\x81\x81\0\0\0\0x\x88\x82\0\0\0\0\x03\xe9";
    shake_hands();
    say(late, sizeof late - 1);
    WS_UNTIL(&f, (hear(), ended) && seen("close 1000"));
    assert_false(seen("message"));
    assert_int_equal(got.len, 4);
}

static void of_many_pings_the_last_one_is_answered(void **state)
{
    (void)state;
    char all[256];
    size_t used = 0;
    for (char i = '0'; i <= '9'; i++) {
        size_t size;
        _cleanup_(free_p) char *bytes = frame(FRAME_PING, &i, 1, &size);
        memcpy(all + used, bytes, size);
        used += size;
    }
    shake_hands();
    say(all, used);
    WS_UNTIL(&f, hear() >= 3 && got.data[got.len - 1] == '9');
}

static void a_session_that_was_paused_reads_what_had_come(void **state)
{
    (void)state;
    struct buf all = BUF_INIT(1 << 20);
    char payload[1000];
    memset(payload, 'a', sizeof payload);
    for (int i = 0; i < 64; i++) {
        size_t size;
        _cleanup_(free_p) char *bytes = frame(FRAME_TEXT, payload, sizeof payload, &size);
        buf_append(&all, bytes, size);
    }
    f.quiet = true;
    shake_hands();
    say(all.data, all.len);
    WS_UNTIL(&f, seen("message"));
    ws_session_pause(f.session);
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, 1);
    ws_session_resume(f.session);
    WS_UNTIL(&f, ws_server_counters(f.server)->messages_in == 64);
    buf_done(&all);
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
    hang_up();
    WS_UNTIL(&f, seen("close 1002"));
}

static void a_peer_that_hangs_up_is_noticed(void **state)
{
    (void)state;
    shake_hands();
    hang_up();
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
    start((struct ws_server_config){.on_buffer = on_buffer, .on_data = on_data});
    shake_hands();
    size_t size;
    _cleanup_(free_p) char *bytes = frame(FRAME_BINARY, body, LONG, &size);
    say(bytes, size - LONG + 100); // so that the server knows how long it is
    for (int i = 0; i < 20; i++)
        loop_run_once(f.loop, 1);
    buffer = to;
    say(bytes + size - LONG + 100, LONG - 100);
    WS_UNTIL(&f, seen("data, the end"));
    size_t elsewhere = LONG - 100 - filled; // a TLS record that is not worth a buffer of its own
    assert_in_range(elsewhere, 0, over_tls ? 32 << 10 : 0);
    assert_memory_equal(to, body + 100, filled);
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
    for (size_t sent = 0; sent < all.len;) // the socket takes all of it
        sent += (size_t)put(all.data + sent, all.len - sent);
    loop_run_once(f.loop, 100);
    assert_in_range(count("message text 1000"), 1, WS_WAVE / LEN);
    WS_UNTIL(&f, count("message text 1000") == N);
    buf_done(&all);
}

static int choose_plain(void **state)
{
    (void)state;
    over_tls = false;
    certs_make(&certs);
    return 0;
}

static int choose_tls(void **state)
{
    struct err err = ERR_INIT;
    choose_plain(state);
    over_tls = true;
    tls = ws_tls_new(certs.ca, &err);
    assert_non_null(tls);
    return 0;
}

static int chosen(void **state)
{
    (void)state;
    ws_tls_unref(TAKE_PTR(tls));
    certs_done(&certs);
    return 0;
}

// libwebsockets decodes a path, and takes dot segments out of it, before anybody can look at it.
static void a_path_that_can_be_read_in_two_ways_is_refused(void **state)
{
    static const char *const paths[] = {"/v1/namespaces/ml%2f..%2fkube", "/v1/namespaces/ml/../kube", "/v1//connect",
                                        "/v1/%63onnect"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        for (int upgrade = 0; upgrade < 2; upgrade++) {
            _cleanup_(free_p) char *request =
                upgrade ? xasprintf("GET %s%s", paths[i], REQUEST + strlen("GET /"))
                        : xasprintf("POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", paths[i]);
            shake_hands_with(request, strlen(request));
            assert_non_null(strstr(buf_str(&got), "HTTP/1.1 400 "));
            hang_up();
            buf_reset(&got);
            ended = false;
        }
    assert_string_equal(buf_str(&f.trace), ""); // nobody was bothered
    shake_hands();
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_server_with_little_to_do_sleeps_long),
        T(a_message_may_come_byte_by_byte),
        T(several_messages_may_come_at_once),
        T(a_ping_is_answered_with_what_it_had),
        T(a_close_is_answered_and_told_with_its_code),
        T(a_close_may_be_without_a_code),
        T(what_waits_is_not_sent_after_the_close_of_the_peer),
        T(what_breaks_the_protocol_is_refused),
        T(nothing_counts_behind_a_close_frame),
        T(of_many_pings_the_last_one_is_answered),
        T(a_session_that_was_paused_reads_what_had_come),
        T(a_frame_that_comes_with_the_handshake_is_refused_and_not_lost),
        T(a_part_of_a_frame_that_comes_with_the_handshake_is_refused_with_the_rest),
        T(a_close_that_comes_with_the_handshake_is_answered),
        T(after_a_breach_the_server_ends_the_connection_first),
        T(a_peer_that_hangs_up_is_noticed),
        T(who_is_paused_is_not_read),
        T(a_long_message_is_read_to_where_it_belongs),
        T(a_path_that_can_be_read_in_two_ways_is_refused),
        T(short_messages_are_read_in_waves_so_that_what_came_of_one_goes_out_before_the_next),
    };
    return cmocka_run_group_tests_name("ws_receive", tests, choose_plain, chosen) +
           cmocka_run_group_tests_name("ws_receive_tls", tests, choose_tls, chosen);
}
