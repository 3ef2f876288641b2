// SPDX-License-Identifier: Apache-2.0
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/kube_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 40 };

static struct kube_fixture *f;
static struct answer a, many[MANY];

static int setup(void **state)
{
    (void)state;
    f = fixture_new(false);
    a = ANSWER_INIT;
    for (int i = 0; i < MANY; i++)
        many[i] = ANSWER_INIT;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_free(f);
    answer_done(&a);
    for (int i = 0; i < MANY; i++)
        answer_done(&many[i]);
    return 0;
}

static void rule(struct fakeapi_rule r)
{
    fakeapi_rule(f->api, &r);
}

static void a_request_arrives_as_it_was_sent(void **state)
{
    (void)state;
    f->config.token = "s3cret";
    rule((struct fakeapi_rule){.status = 201, .body = "{\"kind\":\"Pod\"}"});
    send_create(f, "{\"metadata\":{}}", &a);
    assert_int_equal(a.calls, 0); // kube_send() itself never calls back
    assert_true(answer_wait(f, &a));
    assert_int_equal(a.err.code, 0);
    assert_int_equal(a.status, 201);
    assert_string_equal(a.body.data, "{\"kind\":\"Pod\"}");
    const struct fakeapi_request *r = fakeapi_at(f->api, 0);
    assert_string_equal(r->method, "POST");
    assert_string_equal(r->target, "/api/v1/namespaces/ml/pods");
    assert_string_equal(r->content_type, "application/json");
    assert_string_equal(r->authorization, "Bearer s3cret");
    assert_string_equal(r->user_agent, "cadre-operator/" CADRE_VERSION);
    assert_string_equal(r->body, "{\"metadata\":{}}");
}

static void a_lent_body_is_not_copied_and_sent_again_where_it_is(void **state)
{
    (void)state;
    char body[] = "{\"copied\":1}";
    struct kube_request r = {.verb = VERB_CREATE, .kind = KIND_POD, .ns = "ml", .body = body, .lends_body = true};
    rule((struct fakeapi_rule){.status = 429, .headers = "Retry-After: 1\r\n", .times = 1});
    rule((struct fakeapi_rule){.status = 201, .body = "{}"});
    kube_send(fixture_client(f), &r, 0, on_answer, &a);
    memcpy(body, "{\"lender\"", 9);
    assert_true(answer_wait(f, &a));
    assert_int_equal(a.status, 201);
    assert_int_equal(fakeapi_count(f->api), 2);
    for (int i = 0; i < 2; i++)
        assert_string_equal(fakeapi_at(f->api, i)->body, body);
}

static void each_verb_has_its_method_also_on_a_reused_handle(void **state)
{
    (void)state;
    struct kube_request r = {.kind = KIND_POD, .ns = "ml", .name = "a", .body = "{}", .grace_s = -1};
    const enum verb verbs[] = {VERB_CREATE, VERB_GET, VERB_PATCH_MERGE, VERB_DELETE, VERB_UPDATE, VERB_GET, VERB_APPLY};
    const char *const methods[] = {"POST", "GET", "PATCH", "DELETE", "PUT", "GET", "PATCH"};
    const char *const types[] = {"application/json", NULL, "application/merge-patch+json", NULL,
                                 "application/json", NULL, "application/apply-patch+yaml"};
    rule((struct fakeapi_rule){.body = "{}"});
    for (int i = 0; i < (int)ARRAY_LEN(verbs); i++) {
        r.verb = verbs[i];
        kube_send(fixture_client(f), &r, 0, on_answer, &many[i]);
        assert_true(answer_wait(f, &many[i]));
        assert_int_equal(many[i].err.code, 0);
        assert_string_equal(fakeapi_at(f->api, i)->method, methods[i]);
        assert_true(str_eq(fakeapi_at(f->api, i)->content_type, types[i]));
        assert_string_equal(fakeapi_at(f->api, i)->body, types[i] ? "{}" : "");
    }
    assert_int_equal(fakeapi_connections(f->api), 1); // the connection stays open
}

static void a_burst_keeps_its_connections(void **state)
{
    (void)state;
    enum { BURST = 32 };
    rule((struct fakeapi_rule){.method = "GET", .body = "{}", .split = 1, .pause_ms = 10});
    rule((struct fakeapi_rule){.body = "{}"});
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BURST; i++) {
            answer_done(&many[i]);
            send_get(f, "a", 0, &many[i]);
        }
        for (int i = 0; i < BURST; i++)
            assert_true(answer_wait(f, &many[i]));
        answer_done(&a);
        send_create(f, "{}", &a); // the only request
        assert_true(answer_wait(f, &a));
    }
    assert_int_equal(fakeapi_connections(f->api), BURST);
}

static void an_error_of_the_server_names_the_object(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.status = 409,
                               .body = "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"code\":409,"
                                       "\"message\":\"pods \\\"llama-0-1\\\" already exists\"}"});
    send_create(f, "{}", &a);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_EXISTS, "POST pods ml/llama-0-1: ");
    assert_message(&a, ERR_EXISTS, "already exists");
    assert_int_equal(a.err.http_status, 409);
}

static void a_request_that_cannot_be_one_fails_from_the_loop(void **state)
{
    (void)state;
    send_get(f, "no/name", 0, &a);
    assert_int_equal(a.calls, 0);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_INVALID, "GET pods ml/no/name: \"no/name\" cannot be the name of an object");
    assert_int_equal(fakeapi_count(f->api), 0);
}

static void a_path_is_answered_as_text(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.target = "/version", .body = "{\"gitVersion\":\"v1.36.3\"}"});
    kube_get_path(fixture_client(f), "/version", 0, on_answer, &a);
    kube_get_path(fixture_client(f), "/nowhere", 0, on_answer, &many[0]);
    assert_true(answer_wait(f, &a) && answer_wait(f, &many[0]));
    assert_string_equal(a.body.data, "{\"gitVersion\":\"v1.36.3\"}");
    assert_message(&many[0], ERR_NOT_FOUND, "GET /nowhere: ");
}

static void no_more_than_max_in_flight_are_sent_at_once(void **state)
{
    (void)state;
    f->options.max_in_flight = 3;
    rule((struct fakeapi_rule){.times = 3, .ending = FAKEAPI_SILENT});
    rule((struct fakeapi_rule){.body = "{}"});
    uint64_t ids[MANY];
    for (int i = 0; i < MANY; i++)
        ids[i] = send_get(f, "a", 0, &many[i]);
    assert_int_equal(kube_in_flight(f->client), MANY);
    assert_true(fixture_wait_count(f, 3));
    fixture_turn(f, 20);
    assert_int_equal(fakeapi_count(f->api), 3); // the others wait
    for (int i = 0; i < 3; i++)
        kube_cancel(f->client, ids[i]);
    for (int i = 0; i < MANY; i++)
        assert_true(answer_wait(f, &many[i]));
    for (int i = 3; i < MANY; i++)
        assert_int_equal(many[i].err.code, 0);
    assert_int_equal(kube_in_flight(f->client), 0);
    assert_true(fakeapi_connections(f->api) <= 6); // three of them were canceled
}

static void waiting_requests_keep_their_order(void **state)
{
    (void)state;
    f->options.max_in_flight = 1;
    rule((struct fakeapi_rule){.body = "{}"});
    send_get(f, "a", 0, &many[0]);
    send_get(f, "b", 0, &many[1]);
    for (int i = 0; i < 2; i++)
        assert_true(answer_wait(f, &many[i]));
    assert_string_equal(fakeapi_at(f->api, 0)->target, "/api/v1/namespaces/ml/pods/a");
    assert_string_equal(fakeapi_at(f->api, 1)->target, "/api/v1/namespaces/ml/pods/b");
}

static void too_many_requests_are_refused(void **state)
{
    (void)state;
    enum { LIMIT = 16384 };
    f->options.max_in_flight = 1;
    rule((struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    for (int i = 0; i < LIMIT; i++)
        send_get(f, "a", 0, &many[0]);
    send_get(f, "a", 0, &a);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_LIMIT, "which is the limit");
    assert_int_equal(many[0].calls, 0);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_401_reads_the_token_again(void **state)
{
    (void)state;
    char path[] = "/tmp/cadre-token-XXXXXX";
    close(mkstemp(path));
    write_text(path, "old\n");
    f->config.token_file = path;
    rule((struct fakeapi_rule){.token = "fresh", .body = "{}"});
    rule((struct fakeapi_rule){.token = "old", .status = 401});
    fixture_client(f);
    write_text(path, "fresh\n");
    send_get(f, "a", 0, &many[0]);
    send_get(f, "b", 0, &many[1]);
    assert_true(answer_wait(f, &many[0]) && answer_wait(f, &many[1]));
    unlink(path);
    assert_int_equal(many[0].err.code, 0);
    assert_int_equal(many[1].err.code, 0);
    assert_string_equal(fakeapi_at(f->api, 0)->authorization, "Bearer old");
    assert_string_equal(fakeapi_at(f->api, fakeapi_count(f->api) - 1)->authorization, "Bearer fresh");
}

static void a_401_with_the_token_that_there_is_is_reported(void **state)
{
    (void)state;
    char path[] = "/tmp/cadre-token-XXXXXX";
    close(mkstemp(path));
    write_text(path, "s3cret");
    f->config.token_file = path;
    rule((struct fakeapi_rule){.status = 401, .body = "{\"message\":\"Unauthorized\"}"});
    send_get(f, "a", 0, &a);
    assert_true(answer_wait(f, &a));
    unlink(path);
    assert_message(&a, ERR_UNAUTHORIZED,
                   "GET pods ml/a: the API server does not accept the credentials of kubeconfig /etc/test.conf, "
                   "context test; have they expired?");
    assert_null(strstr(a.err.msg, "s3cret"));
    assert_int_equal(fakeapi_count(f->api), 1);
}

static void a_token_that_could_forge_headers_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct kube_client *c = NULL;
    f->config.token = "a\r\nImpersonate-User: admin";
    assert_int_equal(kube_client_new(f->loop, &f->config, NULL, &c, &err), ERR_INVALID);
    assert_null(c);
    assert_null(strstr(err.msg, "Impersonate"));
    f->config.token = NULL;
    f->config.token_file = "/nowhere/token";
    assert_int_equal(kube_client_new(f->loop, &f->config, NULL, &c, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/nowhere/token"));
}

static void a_server_that_is_not_there_is_named(void **state)
{
    (void)state;
    fakeapi_down(f->api, true);
    send_get(f, "a", 0, &a);
    assert_true(answer_wait(f, &a));
    char want[256];
    snprintf(want, sizeof want,
             "GET pods ml/a: cannot connect to %s: connection refused; is the API server up? "
             "(kubeconfig /etc/test.conf, context test)",
             f->config.server);
    assert_message(&a, ERR_IO, want);

    fakeapi_down(f->api, false);
    rule((struct fakeapi_rule){.body = "{}"});
    send_get(f, "a", 0, &many[0]);
    assert_true(answer_wait(f, &many[0]));
    assert_int_equal(many[0].err.code, 0);
}

static void a_server_that_does_not_answer_is_given_up(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    send_get(f, "a", 100, &a);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_TIMEOUT, "GET pods ml/a: no answer from http://127.0.0.1:");
    assert_message(&a, ERR_TIMEOUT, "within 0.1 s");
}

static void a_request_that_waits_too_long_says_so(void **state)
{
    (void)state;
    f->options.max_in_flight = 1;
    rule((struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    send_get(f, "a", 0, &many[0]);
    assert_true(fixture_wait_count(f, 1));
    send_get(f, "b", 100, &a);
    assert_true(answer_wait(f, &a));
    assert_message(&a, ERR_TIMEOUT, "GET pods ml/b: not sent within 0.1 s: 2 requests are in progress");
    assert_int_equal(many[0].calls, 0);
}

static void a_slow_answer_is_waited_for_but_not_past_the_deadline(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.target = "/pods/a", .body = "{\"a\":1}", .split = 1, .pause_ms = 2});
    rule((struct fakeapi_rule){.target = "/pods/b", .body = "{\"a\":1}", .split = 1, .pause_ms = 60 * 1000});
    send_get(f, "a", 0, &a);
    send_get(f, "b", 200, &many[0]);
    assert_true(answer_wait(f, &a) && answer_wait(f, &many[0]));
    assert_string_equal(a.body.data, "{\"a\":1}");
    assert_message(&many[0], ERR_TIMEOUT, "no answer");
}

static void a_connection_closed_between_requests_is_replaced(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.body = "{}"});
    send_get(f, "a", 0, &many[0]);
    assert_true(answer_wait(f, &many[0]));
    fakeapi_close_idle(f->api);
    send_create(f, "{}", &many[1]);
    assert_true(answer_wait(f, &many[1]));
    assert_int_equal(many[1].err.code, 0);
    assert_int_equal(fakeapi_connections(f->api), 2);
}

// The same as a race: the server closes the connection while the request is on its way.
static void a_kept_connection_that_dies_without_an_answer_is_tried_once_more(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.method = "POST", .times = 1, .ending = FAKEAPI_HANGUP});
    rule((struct fakeapi_rule){.body = "{}"});
    send_get(f, "a", 0, &many[0]);
    assert_true(answer_wait(f, &many[0]));
    send_create(f, "{}", &many[1]);
    assert_true(answer_wait(f, &many[1]));
    assert_int_equal(many[1].err.code, 0);
    assert_int_equal(fakeapi_count(f->api), 3);
}

static void a_new_connection_that_dies_is_reported(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.target = "/pods/a", .ending = FAKEAPI_HANGUP});
    rule((struct fakeapi_rule){.target = "/pods/b", .body = "{\"half\":", .ending = FAKEAPI_DROP});
    rule((struct fakeapi_rule){.target = "/pods/c", .body = "{\"half\":", .ending = FAKEAPI_RESET});
    send_get(f, "a", 0, &many[0]);
    send_get(f, "b", 0, &many[1]);
    send_get(f, "c", 0, &many[2]);
    for (int i = 0; i < 3; i++) {
        assert_true(answer_wait(f, &many[i]));
        assert_message(&many[i], ERR_IO, "the connection to http://127.0.0.1:");
        assert_message(&many[i], ERR_IO, "was lost");
    }
    assert_int_equal(fakeapi_count(f->api), 3); // nobody knows if the server has acted, so the caller decides
}

static void a_long_answer_is_refused(void **state)
{
    (void)state;
    f->options.max_body = 1000;
    char body[2001] = "";
    memset(body, ' ', 2000);
    rule((struct fakeapi_rule){.target = "/pods/a", .body = body});
    rule((struct fakeapi_rule){.target = "/pods/b", .body = body + 1000});
    send_get(f, "a", 0, &many[0]);
    send_get(f, "b", 0, &many[1]);
    assert_true(answer_wait(f, &many[0]) && answer_wait(f, &many[1]));
    assert_message(&many[0], ERR_LIMIT, "the answer is longer than 1000 bytes");
    assert_int_equal(many[1].err.code, 0);
    assert_int_equal(many[1].body.len, 1000);
}

static void a_canceled_request_is_called_back_once(void **state)
{
    (void)state;
    f->options.max_in_flight = 1;
    rule((struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    uint64_t sent = send_get(f, "a", 0, &many[0]);
    assert_true(fixture_wait_count(f, 1));
    uint64_t waiting = send_get(f, "b", 0, &many[1]);
    kube_cancel(f->client, sent);
    kube_cancel(f->client, sent);
    kube_cancel(f->client, waiting);
    kube_cancel(f->client, 12345); // unknown
    assert_int_equal(many[0].calls, 0);
    assert_true(answer_wait(f, &many[0]) && answer_wait(f, &many[1]));
    kube_cancel(f->client, sent);
    fixture_turn(f, 10);
    assert_message(&many[0], ERR_CANCELED, "GET pods ml/a");
    assert_message(&many[1], ERR_CANCELED, "GET pods ml/b");
    assert_int_equal(fakeapi_count(f->api), 1);
}

static bool may_decide(void *ctx)
{
    return *(const bool *)ctx;
}

// A process that stood still may not know yet that it no longer leads.
static void what_a_leader_decides_is_not_sent_once_another_may_lead(void **state)
{
    (void)state;
    bool leads = true;
    const struct kube_request decided = {
        .verb = VERB_DELETE, .kind = KIND_POD, .ns = "ml", .name = "a", .decided = true};
    f->options.max_in_flight = 1;
    f->options.may_decide = may_decide;
    f->options.may_decide_ctx = &leads;
    rule((struct fakeapi_rule){.times = 1, .ending = FAKEAPI_SILENT});
    rule((struct fakeapi_rule){.body = "{}"});
    kube_send(fixture_client(f), &decided, 0, on_answer, &many[0]);
    kube_send(f->client, &decided, 0, on_answer, &many[1]);
    send_get(f, "b", 0, &many[2]);
    assert_true(fixture_wait_count(f, 1));
    leads = false;
    kube_cancel_decided(f->client);
    for (int i = 0; i < 3; i++)
        assert_true(answer_wait(f, &many[i]));
    assert_int_equal(many[0].err.code, ERR_CANCELED);
    assert_int_equal(many[1].err.code, ERR_CANCELED);
    assert_int_equal(many[2].err.code, 0); // not a decision of the leader
    kube_send(f->client, &decided, 0, on_answer, &many[3]);
    assert_true(answer_wait(f, &many[3]));
    assert_int_equal(many[3].err.code, ERR_CANCELED);
    assert_int_equal(fakeapi_count(f->api), 2);
}

static struct kube_client *going;
static uint64_t sent_again;

static void send_again(void *ctx, const struct kube_response *response, const struct err *err)
{
    on_answer(ctx, response, err);
    sent_again = kube_get_path(going, "/again", 0, send_again, ctx);
}

static void a_client_that_goes_cancels_what_is_under_way(void **state)
{
    (void)state;
    f->options.max_in_flight = 1;
    rule((struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    send_get(f, "a", 0, &many[0]);
    send_watch(f, 0, &many[1]);
    assert_true(fixture_wait_count(f, 2));
    send_get(f, "b", 0, &many[2]);
    kube_get_path(f->client, "/c", 0, send_again, &many[3]);
    going = f->client;
    sent_again = 1;
    kube_client_free(TAKE_PTR(f->client));
    for (int i = 0; i < 4; i++)
        assert_message(&many[i], ERR_CANCELED, "canceled");
    assert_int_equal(sent_again, 0);
}

struct observed {
    int n;
    char method[8];
    int status;
};

static void observe(void *ctx, const char *method, int status, int64_t micros)
{
    struct observed *o = ctx;
    o->n += micros >= 0;
    o->status = status;
    snprintf(o->method, sizeof o->method, "%s", method);
}

static void every_exchange_is_observed(void **state)
{
    (void)state;
    struct observed o = {0};
    f->options.observe = observe;
    f->options.observe_ctx = &o;
    rule((struct fakeapi_rule){.times = 1, .status = 503});
    rule((struct fakeapi_rule){.times = 1, .status = 404});
    send_create(f, "{}", &a);
    assert_true(answer_wait(f, &a));
    assert_int_equal(o.n, 2);
    assert_string_equal(o.method, "POST");
    assert_int_equal(o.status, 404);
    fakeapi_down(f->api, true);
    send_get(f, "a", 0, &many[0]);
    assert_true(answer_wait(f, &many[0]));
    assert_int_equal(o.n, 3);
    assert_int_equal(o.status, 0);
}

// There are two idle connections to a host that vanishes. The first one costs a deadline. The second one is not used.
static void after_an_answer_that_stayed_out_idle_connections_are_not_used_again(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.target = "/pods/c", .ending = FAKEAPI_SILENT});
    rule((struct fakeapi_rule){.body = "{}", .split = 1, .pause_ms = 1}); // so that both are in progress together
    send_get(f, "a", 0, &many[0]);
    send_get(f, "b", 0, &many[1]);
    assert_true(answer_wait(f, &many[0]) && answer_wait(f, &many[1]));
    assert_int_equal(fakeapi_connections(f->api), 2);
    send_get(f, "c", 2500, &many[2]);
    assert_true(answer_wait(f, &many[2]));
    assert_message(&many[2], ERR_TIMEOUT, "no answer");
    send_get(f, "d", 0, &many[3]);
    assert_true(answer_wait(f, &many[3]));
    assert_true(fakeapi_at(f->api, 2)->connection <= 2);
    assert_int_equal(fakeapi_at(f->api, 3)->connection, 3);
}

// A thousand requests use few connections. The server closes each connection now and then.
static void a_server_that_closes_connections_at_random_loses_nothing(void **state)
{
    (void)state;
    enum { ROUNDS = 25 };
    f->options.max_in_flight = 8;
    for (int i = 0; i < ROUNDS * MANY / 10; i++) {
        rule((struct fakeapi_rule){.times = 7, .body = "{}"});
        rule((struct fakeapi_rule){.times = 3, .body = "{\"closes\":true}", .ending = FAKEAPI_CLOSE});
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            answer_done(&many[i]);
            send_get(f, "a", 0, &many[i]);
        }
        for (int i = 0; i < MANY; i++) {
            assert_true(answer_wait(f, &many[i]));
            assert_int_equal(many[i].err.code, 0);
        }
    }
    assert_int_equal(fakeapi_count(f->api), ROUNDS * MANY);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_request_arrives_as_it_was_sent),
        TEST(a_lent_body_is_not_copied_and_sent_again_where_it_is),
        TEST(each_verb_has_its_method_also_on_a_reused_handle),
        TEST(a_burst_keeps_its_connections),
        TEST(an_error_of_the_server_names_the_object),
        TEST(a_request_that_cannot_be_one_fails_from_the_loop),
        TEST(a_path_is_answered_as_text),
        TEST(no_more_than_max_in_flight_are_sent_at_once),
        TEST(waiting_requests_keep_their_order),
        TEST(too_many_requests_are_refused),
        TEST(a_401_reads_the_token_again),
        TEST(a_401_with_the_token_that_there_is_is_reported),
        TEST(a_token_that_could_forge_headers_is_refused),
        TEST(a_server_that_is_not_there_is_named),
        TEST(a_server_that_does_not_answer_is_given_up),
        TEST(a_request_that_waits_too_long_says_so),
        TEST(a_slow_answer_is_waited_for_but_not_past_the_deadline),
        TEST(a_connection_closed_between_requests_is_replaced),
        TEST(a_kept_connection_that_dies_without_an_answer_is_tried_once_more),
        TEST(a_new_connection_that_dies_is_reported),
        TEST(a_long_answer_is_refused),
        TEST(a_canceled_request_is_called_back_once),
        TEST(what_a_leader_decides_is_not_sent_once_another_may_lead),
        TEST(a_client_that_goes_cancels_what_is_under_way),
        TEST(after_an_answer_that_stayed_out_idle_connections_are_not_used_again),
        TEST(every_exchange_is_observed),
        TEST(a_server_that_closes_connections_at_random_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
