// SPDX-License-Identifier: Apache-2.0
// Bytes behind the body of a request. libwebsockets keeps them, and has no use for them.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/clock.h"
#include "common/ws/ws_server_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BODY = 1000, ANSWER = 16 << 20 };

static const char head[] = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n";
static char bytes[BODY + 500], answer[ANSWER];
static struct ws_fixture f;
static int fd;

static void say(const void *data, size_t len)
{
    assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

static int setup(void **state)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.ping_ms = 3600 * 1000});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    f.hold_requests = true;
    sa.sin_port = htons((uint16_t)f.port);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    say(head, sizeof head - 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(fd);
    ws_fixture_stop(&f);
    return 0;
}

static bool hears(void)
{
    ssize_t n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    assert_true(n > 0 || (n < 0 && errno == EAGAIN)); // it has not ended
    return n > 0;
}

static int64_t now_ms(void)
{
    return clock_mono_ms(loop_clock(f.loop));
}

// It takes them for more of the body, and gives the rest of that so much time.
static void they_do_not_end_the_answer(void **state)
{
    enum { SECONDS = 8 }; // else 20
    (void)state;
    WS_UNTIL(&f, ws_server_counters(f.server)->connections == 1 && !f.server->n_without_request);
    loop_run_once(f.loop, 1); // from now on libwebsockets does not read it
    say(bytes, BODY);
    WS_UNTIL(&f, f.request);
    struct ws_request *r = f.request;
    say("\r\n", 2);
    ws_request_respond(r, 200, "text/plain", NULL, answer, ANSWER);
    WS_UNTIL(&f, r->sent);
    lws_set_timeout(r->connection->wsi, PENDING_TIMEOUT_HTTP_CONTENT, SECONDS);
    size_t sent = r->sent;
    WS_UNTIL(&f, (hears(), r->sent != sent));
    int64_t until = now_ms() + (SECONDS + 2) * 1000;
    WS_UNTIL(&f, now_ms() >= until);
    assert_int_equal(ws_server_counters(f.server)->connections, 1);
    WS_UNTIL(&f, hears());
}

static void they_do_not_keep_the_loop_busy(void **state)
{
    enum { TURNS = 150 };
    (void)state;
    say(bytes, sizeof bytes);
    WS_UNTIL(&f, f.request);
    ws_request_respond(f.request, 200, "text/plain", NULL, answer, ANSWER);
    int64_t begun = now_ms();
    for (int i = 0; i < TURNS; i++)
        loop_run_once(f.loop, 20);
    assert_true(now_ms() - begun > 1000);
    WS_UNTIL(&f, hears());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_do_not_end_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(they_do_not_keep_the_loop_busy, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
