// SPDX-License-Identifier: Apache-2.0
// Several addresses of this host: some listen, some refuse, some say nothing.
#include "common/ws/ws_dial.h"

#include "common/base/mem.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

enum { FILLERS = 4 };

static struct loop *loop;
static struct ws_dial *dial;
static struct ws_address list[3];
static int listeners[3], fillers[3][FILLERS];
static int connected, failures;
static size_t which;
static int said;

static int setup(void **state)
{
    (void)state;
    loop = loop_new();
    connected = -1;
    failures = 0;
    memset(listeners, -1, sizeof listeners);
    memset(fillers, -1, sizeof fillers);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ws_dial_free(TAKE_PTR(dial));
    loop_free(loop);
    if (connected >= 0)
        close(connected);
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        for (size_t k = 0; k < FILLERS; k++)
            if (fillers[i][k] >= 0)
                close(fillers[i][k]);
        if (listeners[i] >= 0)
            close(listeners[i]);
    }
    return 0;
}

// At a free port, which refuses until it listens.
static void bind_one(size_t i)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)i)};
    socklen_t len = sizeof sa;
    listeners[i] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listeners[i], (struct sockaddr *)&sa, len), 0);
    assert_int_equal(getsockname(listeners[i], (struct sockaddr *)&sa, &len), 0);
    list[i] = (struct ws_address){.len = len};
    memcpy(&list[i].sa, &sa, len);
}

static void listens(size_t i)
{
    bind_one(i);
    assert_int_equal(listen(listeners[i], 8), 0);
}

// Its queue of connections is full: it drops what comes, as a node that is dead does.
static void says_nothing(size_t i)
{
    bind_one(i);
    assert_int_equal(listen(listeners[i], 0), 0);
    for (size_t k = 0; k < FILLERS; k++) {
        fillers[i][k] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fillers[i][k], (struct sockaddr *)&list[i].sa, list[i].len);
    }
}

static void on_connected(void *ctx, int fd, size_t i)
{
    (void)ctx;
    connected = fd;
    which = i;
}

static void on_failed(void *ctx, int error)
{
    (void)ctx;
    failures++;
    said = error;
}

static void race(size_t n)
{
    int64_t end = clock_mono_ms(&clock_system) + PATIENCE_MS;
    dial = ws_dial_new(loop,
                       &(struct ws_dial_config){.list = list, .n = n, .connected = on_connected, .failed = on_failed});
    while (connected < 0 && !failures && clock_mono_ms(&clock_system) < end)
        loop_run_once(loop, 10);
}

static void the_first_that_listens_is_taken(void **state)
{
    (void)state;
    int64_t begun;
    listens(0);
    listens(1);
    do { // until this process does not stand still for as long as an address is waited for
        ws_dial_free(TAKE_PTR(dial));
        if (connected >= 0)
            close(connected);
        connected = -1;
        begun = clock_mono_ms(&clock_system);
        race(2);
        assert_true(connected >= 0);
    } while (clock_mono_ms(&clock_system) - begun >= WS_DIAL_NEXT_MS);
    assert_int_equal(which, 0);
    assert_false(ws_dial_tried(dial, 1));
}

static int option(int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    assert_int_equal(getsockopt(connected, level, name, &value, &len), 0);
    return value;
}

static void the_kernel_finds_a_dead_host(void **state)
{
    (void)state;
    listens(0);
    race(1);
    assert_true(connected >= 0);
    assert_int_equal(option(SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option(IPPROTO_TCP, TCP_KEEPIDLE), WS_DIAL_KEEPALIVE_IDLE_S);
    assert_int_equal(option(IPPROTO_TCP, TCP_KEEPINTVL), WS_DIAL_KEEPALIVE_EVERY_S);
    assert_int_equal(option(IPPROTO_TCP, TCP_KEEPCNT), WS_DIAL_KEEPALIVE_PROBES);
}

static void behind_those_that_refuse(void **state)
{
    (void)state;
    bind_one(0);
    bind_one(1);
    listens(2);
    race(3);
    assert_true(connected >= 0);
    assert_int_equal(which, 2);
}

static void beside_those_that_say_nothing(void **state)
{
    (void)state;
    says_nothing(0);
    says_nothing(1);
    listens(2);
    race(3);
    assert_true(connected >= 0);
    assert_int_equal(which, 2);
    assert_true(ws_dial_tried(dial, 0) && ws_dial_tried(dial, 1));
}

static void where_all_refuse_it_fails(void **state)
{
    (void)state;
    bind_one(0);
    bind_one(1);
    race(2);
    assert_int_equal(failures, 1);
    assert_int_equal(said, ECONNREFUSED);
}

static void it_does_not_wait_for_silence(void **state)
{
    (void)state;
    says_nothing(0);
    race(1);
    assert_int_equal(failures, 1);
    assert_int_equal(said, ETIMEDOUT);
}

static void it_may_be_ended_at_any_time(void **state)
{
    (void)state;
    says_nothing(0);
    dial = ws_dial_new(loop,
                       &(struct ws_dial_config){.list = list, .n = 1, .connected = on_connected, .failed = on_failed});
    loop_run_once(loop, 0);
    assert_true(ws_dial_tried(dial, 0));
    ws_dial_free(TAKE_PTR(dial));
    loop_run_once(loop, 0);
    assert_int_equal(failures, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_first_that_listens_is_taken), T(the_kernel_finds_a_dead_host), T(behind_those_that_refuse),
        T(beside_those_that_say_nothing),   T(where_all_refuse_it_fails),    T(it_does_not_wait_for_silence),
        T(it_may_be_ended_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
