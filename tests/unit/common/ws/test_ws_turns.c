// SPDX-License-Identifier: Apache-2.0
// Many sessions that all have something to say: how much of it is read in a turn of the loop, and of whom.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"
#include "common/wire/frame.h"
#include "common/ws/ws_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SESSIONS = 64, LEN = 1000, EACH = 17 }; // of each session more than it may say in a turn

#define TURN ((size_t)512 << 10)

static struct ws_fixture f;

static int setup(void **state)
{
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.max_message = 1 << 20});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    f.quiet = true;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ws_fixture_stop(&f);
    return 0;
}

static unsigned count(const char *text)
{
    unsigned n = 0;
    for (const char *at = buf_str(&f.trace); (at = strstr(at, text)); at++)
        n++;
    return n;
}

static int shake_hands(void)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                                  "Sec-WebSocket-Protocol: cadre.v1\r\n\r\n";
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f.port)};
    char answer[1024];
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(send(fd, request, sizeof request - 1, 0), sizeof request - 1);
    ssize_t got = 0;
    WS_UNTIL(&f, got > 0 || (got = recv(fd, answer, sizeof answer, MSG_DONTWAIT)) > 0);
    return fd;
}

// All at once; the socket takes it.
static void say_texts(int fd, size_t len)
{
    static const uint8_t key[4] = {0};
    static const char payload[LEN + SESSIONS];
    char text[EACH * (FRAME_HEADER_MAX + sizeof payload)];
    size_t n = 0;
    for (int i = 0; i < EACH; i++) {
        n += frame_header_encode(text + n, true, FRAME_TEXT, len, key);
        memcpy(text + n, payload, len);
        n += len;
    }
    assert_int_equal(send(fd, text, n, MSG_DONTWAIT), n);
}

static void a_turn_reads_so_much_and_the_next_one_goes_on_with_the_others(void **state)
{
    (void)state;
    int fds[SESSIONS];
    char text[32];
    const struct ws_server_counters *counters = ws_server_counters(f.server);
    for (int i = 0; i < SESSIONS; i++)
        fds[i] = shake_hands();
    for (int i = 0; i < SESSIONS; i++)
        say_texts(fds[i], (size_t)(LEN + i));
    for (int turn = 0; turn < 2; turn++) {
        uint64_t before = counters->bytes_in;
        loop_run_once(f.loop, 100);
        assert_in_range(counters->bytes_in - before, TURN / 2, TURN + WS_WAVE);
    }
    for (int i = 0; i < SESSIONS; i++) { // all have been read
        snprintf(text, sizeof text, "message text %d\n", LEN + i);
        assert_true(count(text) > 0);
    }
    WS_UNTIL(&f, count("message text ") == SESSIONS * EACH);
    for (int i = 0; i < SESSIONS; i++)
        close(fds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_turn_reads_so_much_and_the_next_one_goes_on_with_the_others, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
