// SPDX-License-Identifier: Apache-2.0
// HTTP at the gateway, as curl sees it.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/gateway/gateway_state.h"
#include "operator/proxy/tenant.h"
#include "tests/fakeapi/certs.h"
#include "tests/unit/operator/gateway/gateway_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALL(args) \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":{\"method\":\"echo\",\"args\":" args "}}"

// Frees the answer.
static void assert_answer(char *answer, const char *begins, const char *has)
{
    if (!str_starts(answer, begins) || !strstr(answer, has))
        fail_msg("not %s... %s: %s", begins, has, answer);
    free(answer);
}

static void test_a_call_is_answered(void **state)
{
    struct gateway_peer worker;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    assert_answer(gateway_post(&f, GROUP_PATH, "alice", CALL("[10]")),
                  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
                  "\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[{\"rank\":0,\"args\":[10]}]}");
    assert_answer(gateway_post(&f, "/v1/namespaces/ml", "alice",
                               "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"group.info\",\"params\":{\"group\":"
                               "\"llama\"}}"),
                  "HTTP/1.1 200 ", "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"namespace\":\"ml\"");
    // A call without an id runs, and gets no answer.
    assert_answer(gateway_post(&f, GROUP_PATH, "alice",
                               "{\"jsonrpc\":\"2.0\",\"method\":\"group.call\",\"params\":{\"method\":\"echo\"}}"),
                  "HTTP/1.1 202 ", "Content-Length: 0\r\n");
    assert_int_equal(gateway_fixture_counters(&f).posts, 0);
    assert_int_equal(gateway_fixture_counters(&f).answers, 2);
    gateway_peer_hang_up(&worker);
}

static void test_errors_of_calls_are_answers(void **state)
{
    (void)state;
    gateway_fixture_group(&f, 1, 1, "it was suspended");
    assert_answer(gateway_post(&f, GROUP_PATH, "alice", CALL("[10]")), "HTTP/1.1 200 ", "\"code\":-32015");
    assert_answer(gateway_post(&f, GROUP_PATH, "alice", "{"), "HTTP/1.1 200 ", "\"code\":-32700");
    assert_answer(gateway_post(&f, GROUP_PATH, "alice", ""), "HTTP/1.1 200 ", "\"code\":-32700");
    assert_answer(gateway_post(&f, GROUP_PATH, "alice", "[]"), "HTTP/1.1 200 ", "\"code\":-32600");
    assert_answer(gateway_post(&f, "/v1/namespaces/ml/workergroups/other", "alice", CALL("[10]")), "HTTP/1.1 200 ",
                  "there is no WorkerGroup ml/other");
}

static void test_refused(void **state)
{
    (void)state;
    assert_answer(gateway_post(&f, GROUP_PATH, NULL, CALL("[10]")), "HTTP/1.1 401 ", "WWW-Authenticate: Bearer\r\n");
    assert_answer(gateway_post(&f, GROUP_PATH, "mallory", CALL("[10]")), "HTTP/1.1 401 ", "nobody's");
    assert_answer(gateway_post(&f, GROUP_PATH, "bob", CALL("[10]")), "HTTP/1.1 403 ", "bob may not");
    assert_answer(gateway_post(&f, "/v1/nothing", "alice", CALL("[10]")), "HTTP/1.1 404 ", "this path does not exist");
    assert_answer(gateway_post(&f, "/v1/connect", "alice", CALL("[10]")), "HTTP/1.1 404 ", "websockets");
    static const char get[] = "GET " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice\r\n\r\n";
    assert_answer(gateway_ask(&f, get, sizeof get - 1), "HTTP/1.1 426 ", "POST a JSON-RPC request");
    static const char basic[] =
        "POST " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nAuthorization: Basic YWxpY2U=\r\nContent-Length: 2\r\n\r\n{}";
    assert_answer(gateway_ask(&f, basic, sizeof basic - 1), "HTTP/1.1 401 ", "token");
    static const char huge[] = "POST " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999999\r\n\r\n";
    assert_answer(gateway_ask(&f, huge, sizeof huge - 1), "HTTP/1.1 413 ", "too long");
    assert_int_equal(gateway_fixture_counters(&f).opened, 0);
}

// A browser sends whatever a web site wants from inside the network of its user, but it also sends the origin.
static void test_a_web_site_is_refused(void **state)
{
    static const char head[] = "POST " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice\r\n"
                               "Content-Length: 2\r\n%s\r\n{}";
    static const struct {
        const char *headers, *begins, *has;
    } cases[] = {
        {"Content-Type: application/json\r\nOrigin: https://evil.example\r\n", "HTTP/1.1 403 ", "web site"},
        {"Content-Type: application/json\r\nOrigin: null\r\n", "HTTP/1.1 403 ", "web site"},
        {"Content-Type: application/json\r\nOrigin: http://h\r\n", "HTTP/1.1 202 ", ""},
        {"Content-Type: text/plain\r\n", "HTTP/1.1 415 ", "application/json"},
        {"", "HTTP/1.1 415 ", "application/json"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(free_p) char *request = xasprintf(head, cases[i].headers);
        assert_answer(gateway_ask(&f, request, strlen(request)), cases[i].begins, cases[i].has);
    }
    static const char upgrade[] =
        "GET " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Protocol: cadre.v1.json\r\nAuthorization: Bearer alice\r\nOrigin: https://evil.example\r\n\r\n";
    assert_answer(gateway_ask(&f, upgrade, sizeof upgrade - 1), "HTTP/1.1 403 ", "web site");
    assert_int_equal(f.n_asked, 1);
}

static void test_authority_that_never_answers(void **state)
{
    (void)state;
    gateway_fixture_restart(&f, &(struct gateway_config){.authorise_ms = 20});
    assert_answer(gateway_post(&f, GROUP_PATH, "late", CALL("[10]")), "HTTP/1.1 503 ", "Retry-After: 1\r\n");
    assert_int_equal(f.n_canceled, 1);
}

// A body may be long, and takes the room of others.
static void test_no_body_is_waited_for_without_the_right(void **state)
{
    static const char head[] = "POST " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                               "Content-Length: 1000000\r\n%s\r\n";
    static const struct {
        const char *header, *begins;
    } cases[] = {
        {"", "HTTP/1.1 401 "},
        {"Authorization: Bearer mallory\r\n", "HTTP/1.1 401 "},
        {"Authorization: Bearer bob\r\n", "HTTP/1.1 403 "},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(free_p) char *request = xasprintf(head, cases[i].header);
        assert_answer(gateway_ask(&f, request, strlen(request)), cases[i].begins, "");
    }
}

static void admit_late(void *ctx)
{
    struct loop_timer **timer = ctx;
    if (f.late)
        f.late(f.late_ctx, &(struct client_user){.name = "late"}, 0, &(struct err){0});
    else
        loop_timer_arm(*timer, 1);
}

static void test_a_body_is_read_once_the_right_is_known(void **state)
{
    struct gateway_peer worker;
    struct loop_timer *timer = loop_timer_new(f.loop, admit_late, &timer);
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    for (int len = 1; len <= 900000; len += 899999) { // the first one comes with the head, the second one does not
        _cleanup_(free_p) char *body = xasprintf("%s%*s", CALL("[10]"), len, "");
        f.late = NULL;
        loop_timer_arm(timer, 1);
        assert_answer(gateway_post(&f, GROUP_PATH, "late", body), "HTTP/1.1 200 ",
                      "\"result\":[{\"rank\":0,\"args\":[10]}]");
    }
    loop_timer_free(timer);
    gateway_peer_hang_up(&worker);
}

// Sends so many bytes of it, and reads nothing.
static int begin_post(const char *body, size_t len)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)f.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    _cleanup_(free_p) char *request =
        xasprintf("POST " GROUP_PATH " HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                  "Authorization: Bearer alice\r\nContent-Length: %zu\r\n\r\n%s",
                  len, body);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
    return fd;
}

static void test_a_body_is_charged_to_the_namespace(void **state)
{
    (void)state;
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    int fd = begin_post("{", 1000000); // the rest does not come
    GATEWAY_UNTIL(&f, quota_used(t->quota) == 1000000);
    close(fd);
    GATEWAY_UNTIL(&f, quota_used(t->quota) == 0);
    size_t taken = quota_left(t->quota);
    assert_true(quota_charge(t->quota, taken));
    assert_answer(gateway_post(&f, GROUP_PATH, "alice", CALL("[10]")), "HTTP/1.1 429 ",
                  "calls and answers of namespace ml take");
    quota_refund(t->quota, taken);
    tenant_unref(t);
}

// A namespace whose bodies do not come has no more connections than its part.
static void test_a_body_that_is_to_come_is_a_connection_of_its_namespace(void **state)
{
    enum { MOST = 16, PART = 4 }; // the others have half, and a single namespace has half of the rest
    int fds[PART];
    (void)state;
    gateway_fixture_restart(&f, &(struct gateway_config){.max_connections = MOST});
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    for (uint32_t i = 0; i < PART; i++) {
        fds[i] = begin_post("{", 100);
        GATEWAY_UNTIL(&f, t->n_sessions == i + 1);
    }
    assert_answer(gateway_post(&f, GROUP_PATH, "alice", CALL("[10]")), "HTTP/1.1 429 ",
                  "the clients of namespace ml have 4 connections here");
    assert_answer(gateway_post(&f, "/v1/namespaces/web/workergroups/llama", "alice", CALL("[10]")), "HTTP/1.1 200 ",
                  "there is no WorkerGroup web/llama");
    for (int i = 0; i < PART; i++)
        close(fds[i]);
    GATEWAY_UNTIL(&f, t->n_sessions == 0);
    tenant_unref(t);
}

static void test_an_answer_is_charged_to_the_namespace_until_it_is_taken(void **state)
{
    enum { RESULT = 1000 << 10, POSTS = 16 };
    struct gateway_peer worker;
    int fds[POSTS];
    char *result = malloc(RESULT + 1);
    (void)state;
    memset(result, '1', RESULT);
    result[RESULT] = '\0';
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    worker.quiet = true;
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    for (int i = 0; i < POSTS; i++) {
        fds[i] = begin_post(CALL("[10]"), strlen(CALL("[10]")));
        GATEWAY_UNTIL(&f, worker.n_calls == (uint32_t)i + 1);
        setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
        gateway_peer_send(&worker, RECORD_RESULT, worker.last_call, 0, result);
    }
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).posts == 0);
    uint32_t unread = t->n_sessions; // answers in the buffers of the kernel are gone already
    assert_in_range(unread, 1, POSTS);
    assert_in_range(quota_used(t->quota), unread * RESULT, SIZE_MAX);
    for (int i = 0; i < POSTS; i++)
        close(fds[i]);
    GATEWAY_UNTIL(&f, quota_used(t->quota) == 0 && t->n_sessions == 0);
    tenant_unref(t);
    gateway_peer_hang_up(&worker);
    free(result);
}

// The turns that one namespace owes do not delay others.
static void test_a_post_waits_for_the_turn_of_its_namespace(void **state)
{
    (void)state;
    struct tenant *t = tenant_get(gateway_router(f.gateway), "ml");
    tenant_spend(t, SIZE_MAX / 2);
    int fd = begin_post(CALL("[10]"), strlen(CALL("[10]")));
    GATEWAY_UNTIL(&f, !list_empty(&f.gateway->behind_posts));
    tenant_spend(t, SIZE_MAX / 2);
    assert_answer(gateway_post(&f, "/v1/namespaces/web/workergroups/llama", "alice", CALL("[10]")), "HTTP/1.1 200 ",
                  "there is no WorkerGroup web/llama");
    assert_false(list_empty(&f.gateway->behind_posts));
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).posts == 0); // it is answered in the end
    assert_true(tenant_has_turn(t));
    close(fd);
    GATEWAY_UNTIL(&f, gateway_idle(f.gateway));
    tenant_unref(t);
}

struct stopper {
    struct gateway_peer *worker;
    struct loop_timer *timer;
    const char *answer; // the worker's answer while the gateway stops; NULL = none
};

static void stop_when_called(void *ctx)
{
    const struct stopper *s = ctx;
    if (!s->worker->last_call) {
        loop_timer_arm(s->timer, 1);
        return;
    }
    gateway_stop(f.gateway);
    if (s->answer)
        gateway_peer_send(s->worker, RECORD_RESULT, s->worker->last_call, 0, s->answer);
}

static void assert_stopping(const char *answer, const char *status, const char *text)
{
    struct gateway_peer worker;
    struct stopper s = {.worker = &worker, .answer = answer};
    gateway_fixture_restart(&f, &(struct gateway_config){.drain_ms = answer ? 0 : 20});
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    worker.quiet = true;
    s.timer = loop_timer_new(f.loop, stop_when_called, &s);
    loop_timer_arm(s.timer, 1);
    char *got = gateway_post(&f, GROUP_PATH, "alice", CALL("[10]"));
    assert_null(strstr(got, "Retry-After")); // the call may have run
    assert_answer(got, status, text);
    GATEWAY_UNTIL(&f, worker.closed && gateway_idle(f.gateway));
    loop_timer_free(s.timer);
    gateway_peer_hang_up(&worker);
}

static void test_stop(void **state)
{
    (void)state;
    assert_stopping("11", "HTTP/1.1 200 ", "\"result\":[11]");
    assert_stopping(NULL, "HTTP/1.1 503 ", "it may have run");
}

static void test_ca(void **state)
{
    static const char get[] = "GET /v1/ca HTTP/1.1\r\nHost: h\r\n\r\n";
    struct certs certs;
    struct err err = ERR_INIT;
    (void)state;
    assert_answer(gateway_ask(&f, get, sizeof get - 1), "HTTP/1.1 404 ", "no CA");
    certs_make(&certs);
    assert_int_equal(gateway_certificate(f.gateway, certs.server_cert, certs.server_key, certs.ca, &err), 0);
    assert_answer(gateway_ask(&f, get, sizeof get - 1), "HTTP/1.1 200 ", certs.ca);
    assert_int_equal(gateway_certificate(f.gateway, certs.server_cert, certs.ca, certs.ca, &err), ERR_INVALID);
    assert_answer(gateway_ask(&f, get, sizeof get - 1), "HTTP/1.1 200 ", certs.ca);
    certs_done(&certs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_call_is_answered),
        TEST(test_errors_of_calls_are_answers),
        TEST(test_refused),
        TEST(test_a_web_site_is_refused),
        TEST(test_authority_that_never_answers),
        TEST(test_no_body_is_waited_for_without_the_right),
        TEST(test_a_body_is_read_once_the_right_is_known),
        TEST(test_a_body_is_charged_to_the_namespace),
        TEST(test_a_body_that_is_to_come_is_a_connection_of_its_namespace),
        TEST(test_an_answer_is_charged_to_the_namespace_until_it_is_taken),
        TEST(test_a_post_waits_for_the_turn_of_its_namespace),
        TEST(test_stop),
        TEST(test_ca),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
