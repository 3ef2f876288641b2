// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/health.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/text_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    struct loop *loop;
    struct metrics *metrics;
    struct health *health;
    bool ready;
    struct buf answer;
} t;

static bool is_ready(void *ctx, struct buf *why_not)
{
    (void)ctx;
    if (!t.ready)
        buf_puts(why_not, "pods: not complete\n");
    return t.ready;
}

static int setup(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    t.loop = loop_new();
    t.metrics = metrics_new();
    t.ready = true;
    t.answer = BUF_INIT(1 << 20);
    struct health_options o = {.address = "127.0.0.1:0", .metrics = t.metrics, .ready = is_ready};
    return health_start(t.loop, &o, &t.health, &err);
}

static int teardown(void **state)
{
    (void)state;
    health_stop(t.health);
    metrics_free(t.metrics);
    buf_done(&t.answer);
    loop_free(t.loop);
    return 0;
}

// The port of the socket that began to listen last: the kernel has chosen it.
static in_port_t port(void)
{
    struct sockaddr_in6 a;
    int fd = 1024, listens = 0;
    socklen_t len = sizeof listens;
    while (fd-- && !(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens))
        ;
    len = sizeof a;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    return a.sin6_port; // at the same place in both families
}

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = port(), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void say(int fd, const char *bytes, size_t n)
{
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

// Turns the loop until the other side closes the connection. Returns what it sent.
static const char *hear(int fd)
{
    buf_reset(&t.answer);
    for (;;) {
        char bytes[4096];
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n > 0)
            buf_append(&t.answer, bytes, (size_t)n);
        else if (n == 0 || errno != EAGAIN)
            break;
        else
            loop_run_once(t.loop, 1000);
    }
    return buf_str(&t.answer);
}

static const char *ask(const char *request)
{
    int fd = dial();
    say(fd, request, strlen(request));
    const char *answer = hear(fd);
    close(fd);
    return answer;
}

static void alive_is_always_ok(void **state)
{
    (void)state;
    t.ready = false;
    assert_string_equal(ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
                        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n"
                        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\nok\n");
}

static void unready_says_why(void **state)
{
    (void)state;
    assert_true(str_starts(ask("GET /readyz HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK\r\n"));
    t.ready = false;
    const char *answer = ask("GET /readyz HTTP/1.1\r\n\r\n");
    assert_true(str_starts(answer, "HTTP/1.1 503 Service Unavailable\r\n"));
    assert_true(text_ends(answer, "\r\n\r\npods: not complete\n"));
}

static void metrics_are_text_with_their_version(void **state)
{
    (void)state;
    metric_set(metrics_gauge(t.metrics, "leader_election_master_status", "L.", "name=\"cadre\""), 1);
    const char *answer = ask("GET /metrics?x=1 HTTP/1.1\r\nAccept: */*\r\n\r\n");
    assert_non_null(strstr(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert_non_null(strstr(answer, "\nleader_election_master_status{name=\"cadre\"} 1\n"));
}

static void head_is_get_without_the_body(void **state)
{
    (void)state;
    const char *answer = ask("HEAD /healthz HTTP/1.1\r\n\r\n");
    assert_non_null(strstr(answer, "Content-Length: 3\r\n"));
    assert_true(text_ends(answer, "\r\n\r\n"));
}

static void what_is_not_there_and_what_is_not_allowed(void **state)
{
    (void)state;
    assert_true(str_starts(ask("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 "));
    assert_true(str_starts(ask("GET /healthz/x HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 "));
    const char *answer = ask("POST /healthz HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
    assert_true(str_starts(answer, "HTTP/1.1 405 "));
    assert_non_null(strstr(answer, "\r\nAllow: GET, HEAD\r\n"));
}

static void garbage_gets_a_400(void **state)
{
    (void)state;
    static const char *const garbage[] = {"\r\n\r\n",
                                          "hello\r\n\r\n",
                                          "GET\r\n\r\n",
                                          "GET  HTTP/1.1\r\n\r\n",
                                          "GET x HTTP/1.1\r\n\r\n",
                                          "GET /healthz\r\n\r\n",
                                          "GET /healthz SMTP\r\n\r\n",
                                          "GET /healthz HTTP/2\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(garbage); i++)
        assert_true(str_starts(ask(garbage[i]), "HTTP/1.1 400 Bad Request\r\n"));
    int fd = dial();
    say(fd, "\x16\x03\x01\x00\xf4\x01\x00", 7); // a TLS hello
    assert_true(str_starts(hear(fd), "HTTP/1.1 400 Bad Request\r\n"));
    close(fd);
}

static void a_request_may_come_byte_by_byte(void **state)
{
    (void)state;
    const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd = dial();
    for (size_t i = 0; i < sizeof request - 1; i++) {
        say(fd, request + i, 1);
        loop_run_once(t.loop, 20);
    }
    assert_true(str_starts(hear(fd), "HTTP/1.1 200 OK\r\n"));
    close(fd);
}

static void bare_newlines_are_fine(void **state)
{
    (void)state;
    assert_true(str_starts(ask("GET /healthz HTTP/1.0\n\n"), "HTTP/1.1 200 OK\r\n"));
}

static void an_endless_request_is_cut(void **state)
{
    (void)state;
    char request[5000];
    memset(request, 'x', sizeof request);
    memcpy(request, "GET /healthz HTTP/1.1\r\nX: ", 26);
    int fd = dial();
    say(fd, request, sizeof request);
    assert_true(str_starts(hear(fd), "HTTP/1.1 431 "));
    close(fd);
}

static void of_pipelined_requests_the_first_is_answered(void **state)
{
    (void)state;
    const char *answer = ask("GET /healthz HTTP/1.1\r\n\r\nGET /readyz HTTP/1.1\r\n\r\nGET /nothing HTTP/1.1\r\n\r\n");
    assert_true(str_starts(answer, "HTTP/1.1 200 OK\r\n"));
    assert_null(strstr(answer + 1, "HTTP/1.1"));
}

static void a_client_that_hangs_up_costs_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        int fd = dial();
        if (i % 2)
            say(fd, "GET /met", 8);
        close(fd);
        loop_run_once(t.loop, 10);
    }
    assert_true(str_starts(ask("GET /healthz HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK\r\n"));
}

// 64 silent clients hold every place. The next client still gets its answer, and the oldest silent one loses its place.
static void silent_clients_do_not_keep_others_out(void **state)
{
    (void)state;
    int fds[80];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial();
        loop_run_once(t.loop, 1000);
    }
    assert_true(str_starts(ask("GET /healthz HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK\r\n"));
    assert_string_equal(hear(fds[0]), "");
    say(fds[79], "GET /healthz HTTP/1.1\r\n\r\n", 25);
    assert_true(str_starts(hear(fds[79]), "HTTP/1.1 200 OK\r\n"));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static void an_answer_larger_than_the_socket_takes_arrives_whole(void **state)
{
    (void)state;
    for (int i = 0; i < 4000; i++) {
        char labels[64];
        snprintf(labels, sizeof labels, "n=\"%d\"", i);
        metrics_gauge(t.metrics, "a_long_name_for_a_gauge_that_is_there_four_thousand_times", "G.", labels);
    }
    metrics_gauge(t.metrics, "the_last_one", "L.", "");
    const char *answer = ask("GET /metrics HTTP/1.1\r\n\r\n");
    assert_true(strlen(answer) > 200000);
    assert_non_null(strstr(answer, "{n=\"3999\"} 0\n"));
    assert_non_null(strstr(answer, "\nthe_last_one 0\n"));
}

static void no_descriptors_left_is_not_the_end(void **state)
{
    (void)state;
    int client = dial();
    struct rlimit old, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)client, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 5; i++)
        loop_run_once(t.loop, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    say(client, "GET /healthz HTTP/1.1\r\n\r\n", 25);
    assert_true(str_starts(hear(client), "HTTP/1.1 200 OK\r\n"));
    close(client);
}

static void stopping_closes_open_connections(void **state)
{
    (void)state;
    int fd = dial();
    loop_run_once(t.loop, 1000);
    health_stop(t.health);
    t.health = NULL;
    assert_string_equal(hear(fd), "");
    close(fd);
    loop_run(t.loop); // nothing keeps the loop alive
}

static void assert_refused(const char *address, int code, const char *words)
{
    struct err err = ERR_INIT;
    struct health *h = NULL;
    assert_int_equal(health_start(t.loop, &(struct health_options){.address = address}, &h, &err), code);
    assert_non_null(strstr(err.msg, address));
    assert_non_null(strstr(err.msg, words));
}

static void an_address_that_cannot_be_is_explained(void **state)
{
    (void)state;
    char taken[32];
    snprintf(taken, sizeof taken, "127.0.0.1:%d", ntohs(port()));
    assert_refused(taken, ERR_UNAVAILABLE, "address already in use");
    assert_refused("203.0.113.7:8080", ERR_UNAVAILABLE, "no interface of this machine");
    static const char *const bad[] = {
        "8080",     "",          "localhost:8080", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000",
        "::1:8080", "[::1:8080", "[]:80",          "[::1]8080"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_refused(bad[i], ERR_INVALID, "<IP address>:<port>");
}

static void a_port_alone_listens_on_every_address(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct health *first = t.health;
    assert_int_equal(health_start(t.loop, &(struct health_options){.address = ":0"}, &t.health, &err), 0);
    assert_true(str_starts(ask("GET /readyz HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK\r\n"));
    assert_true(str_starts(ask("GET /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 ")); // there are no metrics
    health_stop(t.health);
    t.health = first;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define HEALTH_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        HEALTH_TEST(alive_is_always_ok),
        HEALTH_TEST(unready_says_why),
        HEALTH_TEST(metrics_are_text_with_their_version),
        HEALTH_TEST(head_is_get_without_the_body),
        HEALTH_TEST(what_is_not_there_and_what_is_not_allowed),
        HEALTH_TEST(garbage_gets_a_400),
        HEALTH_TEST(a_request_may_come_byte_by_byte),
        HEALTH_TEST(bare_newlines_are_fine),
        HEALTH_TEST(an_endless_request_is_cut),
        HEALTH_TEST(of_pipelined_requests_the_first_is_answered),
        HEALTH_TEST(a_client_that_hangs_up_costs_nothing),
        HEALTH_TEST(silent_clients_do_not_keep_others_out),
        HEALTH_TEST(an_answer_larger_than_the_socket_takes_arrives_whole),
        HEALTH_TEST(no_descriptors_left_is_not_the_end),
        HEALTH_TEST(stopping_closes_open_connections),
        HEALTH_TEST(an_address_that_cannot_be_is_explained),
        HEALTH_TEST(a_port_alone_listens_on_every_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
