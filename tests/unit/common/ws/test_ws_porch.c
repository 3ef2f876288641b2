// SPDX-License-Identifier: Apache-2.0
// Connections that say nothing, or not enough: what they may take of a server, and what they cannot take from others.
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ws_fixture f;
static struct ws_peer p;

static int setup(void **state)
{
    (void)state;
    f = (struct ws_fixture){0};
    p = (struct ws_peer){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ws_peer_stop(&p);
    ws_fixture_stop(&f);
    return 0;
}

static void open_peer(void)
{
    ws_peer_start(&p, &f, NULL);
    WS_UNTIL(&f, p.opened || p.closed);
    assert_true(p.opened);
}

static int silent_connection(void)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)f.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

// libwebsockets would walk a list of them for each that comes.
static void connections_that_say_nothing_stay_out_and_take_nobody_s_place(void **state)
{
    int fds[60];
    const struct ws_server_counters *n;
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.max_connections = 32});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    n = ws_server_counters(f.server);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = silent_connection();
    WS_UNTIL(&f, n->turned_away >= ARRAY_LEN(fds) - 8); // a quarter of 32
    assert_int_equal(n->connections, 0);
    open_peer();
    assert_int_equal(n->connections, 1);
    // The one that came last may still say something.
    assert_int_equal(send(fds[ARRAY_LEN(fds) - 1], "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
    WS_UNTIL(&f, n->connections == 2);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static void requests_that_never_end_go_for_new_ones(void **state)
{
    int fds[30];
    const struct ws_server_counters *n;
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.max_connections = 32});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    n = ws_server_counters(f.server);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = silent_connection();
        assert_int_equal(send(fds[i], "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL), 16);
        uint64_t before = n->turned_away;
        WS_UNTIL(&f, n->connections == i + 1 || n->turned_away > before || n->connections >= 8);
    }
    WS_UNTIL(&f, n->turned_away >= ARRAY_LEN(fds) - 8 && n->connections <= 8);
    open_peer();
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static void who_says_nothing_in_time_goes(void **state)
{
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){.first_line_ms = 10});
    ws_fixture_listen(&f, "127.0.0.1:0", false);
    int fd = silent_connection();
    WS_UNTIL(&f, ws_server_counters(f.server)->turned_away == 1);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), -1); // a reset
    close(fd);
}

// The limit of descriptors is the process's, so it is a child's here.
static void there_are_fewer_connections_where_there_are_few_descriptors(void **state)
{
    (void)state;
    ws_fixture_start(&f, &(struct ws_server_config){0});
    pid_t pid = fork();
    if (pid == 0) {
        const char *const none[] = {NULL};
        struct rlimit few = {64, 64};
        struct err err = ERR_INIT;
        struct loop *loop = loop_new();
        setrlimit(RLIMIT_NOFILE, &few);
        struct ws_server *server = ws_server_new(loop, &(struct ws_server_config){.subprotocols = none}, &err);
        _exit(server && ws_server_max_connections(server) == 32 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(connections_that_say_nothing_stay_out_and_take_nobody_s_place),
        T(requests_that_never_end_go_for_new_ones),
        T(who_says_nothing_in_time_goes),
        T(there_are_fewer_connections_where_there_are_few_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
