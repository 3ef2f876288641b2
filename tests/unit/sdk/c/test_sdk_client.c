// SPDX-License-Identifier: Apache-2.0
#include "tests/fakeapi/certs.h"
#include "tests/unit/sdk/c/sdk_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>

// Calls that are sent

static void a_call_brings_its_result(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    assert_string_equal(call_method(f, "echo", " [10, {\"a\": \"b\"}]"), "[10, {\"a\": \"b\"}]");
    assert_string_equal(call_method(f, "echo", NULL), "[]");
    assert_true(cadre_client_connected(f->client));
    assert_int_equal(cadre_client_pending(f->client), 0);
}

static void hello_says_who_and_whom(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    call_method(f, "echo", NULL);
    size_t n = sdk_proxy_saw(&f->proxy, "HELLO"); // a connection that is made slowly is given up for another one
    assert_true(n >= 1);
    assert_true(sdk_proxy_saw(&f->proxy, "upgrade /v1/namespaces/ml/workergroups/llama -\n") >= n);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "HELLO {\"role\":\"controller\",\"version\":1,"), n);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "\"namespace\":\"ml\",\"group\":\"llama\"}"), n);
}

static void the_head_has_what_the_caller_asks_for(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    call_method(f, "echo", "[1]"); // now it is connected, and time does not shorten what is left
    cadre_client_request r = request_of("echo");
    r.timeout_ms = 0;
    r.group = "ml/other";
    r.attempt = 3;
    r.refuse_when_not_ready = 1;
    r.dispatch = CADRE_CLIENT_ONE_TO_ALL;
    r.execute = CADRE_CLIENT_EXECUTE_RANK_ZERO;
    call(f, &r);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL -1/1/2 {\"method\":\"echo\",\"group\":\"ml/other\",\"attempt\":3,"
                                              "\"whenNotReady\":\"Refuse\"} []\n"),
                     1);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL -1/0/0 {\"method\":\"echo\",\"timeoutMs\":"), 1);
}

static void a_call_to_one_rank(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    cadre_client_request r = request_of("echo");
    r.timeout_ms = 0;
    r.rank = 3;
    assert_string_equal(call(f, &r), "[]");
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL 3/0/0 {\"method\":\"echo\"} []\n"), 1);
}

static void arguments_for_each_rank_make_a_list(void **state)
{
    struct fixture *f = *state;
    const cadre_client_json per_rank[] = {J("1"), J("[2, 3]"), J("{\"x\": 4}")};
    open_client(f);
    cadre_client_request r = request_of("echo");
    r.per_rank = per_rank;
    r.n_per_rank = 3;
    assert_string_equal(call(f, &r), "[1,[2, 3],{\"x\": 4}]");
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL -1/2/0 "), 1);
}

static void a_list_for_no_rank_is_not_a_call_without_arguments(void **state)
{
    struct fixture *f = *state;
    const cadre_client_json none = J("");
    open_client(f);
    cadre_client_request r = request_of("echo");
    r.per_rank = &none;
    call(f, &r);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL -1/2/0 {\"method\":\"echo\",\"timeoutMs\":"), 1);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "} []\n"), 1);
}

static void waiting_has_no_limit(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {0};
    open_client(f);
    start_method(f, "echo", &o);
    while (cadre_client_pending(f->client))
        cadre_client_wait(f->client, INT64_MAX);
    assert_int_equal(o.n, 1);
}

static void info_is_a_call_of_its_own_method(void **state)
{
    struct fixture *f = *state;
    cadre_client_json info;
    open_client(f);
    assert_int_equal(cadre_client_info(f->client, NULL, PATIENCE_MS, &info, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(info.len, strlen("\"group.info\""));
    assert_memory_equal(info.text, "\"group.info\"", info.len);
}

static void a_call_says_for_which_role_it_is(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = request_of("method");
    open_client(f);
    r.role = "actor";
    r.via = "[\"ml/a/0/step\"]";
    assert_string_equal(call(f, &r), "\"method\"");
    assert_int_equal(sdk_proxy_saw(&f->proxy, "\"role\":\"actor\",\"via\":[\"ml/a/0/step\"]}"), 1);
}

static void a_rank_is_killed_by_a_call_to_it(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    assert_int_equal(cadre_client_kill(f->client, NULL, 2, PATIENCE_MS, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL 2/0/0 {\"method\":\"group.kill\",\"timeoutMs\":"), 1);
}

static void an_object_is_put_where_the_request_says(void **state)
{
    struct fixture *f = *state;
    cadre_client_request to = request_of("ignored");
    open_client(f);
    to.timeout_ms = 0;
    to.rank = 2;
    to.pin = 1;
    to.args = J("[0]");
    to.per_rank = &to.args;
    to.n_per_rank = 1;
    to.role = "ignored";
    to.no_result = to.by_reference = to.keep = 1;
    assert_int_equal(cadre_client_object_put(f->client, &to, J("[7]"), NULL, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL 2/0/0 {\"method\":\"object.put\",\"pin\":true} [7]\n"), 1);
    assert_int_equal(cadre_client_object_put(f->client, NULL, J("8"), NULL, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL -1/0/0 {\"method\":\"object.put\"} 8\n"), 1);
    to.size = 1;
    assert_int_equal(cadre_client_object_put(f->client, &to, J("[7]"), NULL, &f->error), CADRE_CLIENT_INVALID);
}

static void references_are_arguments_of_what_is_done_with_them(void **state)
{
    struct fixture *f = *state;
    const cadre_client_json reference = J("{\"$ref\":\"cadre:1:x\"}");
    open_client(f);
    assert_int_equal(cadre_client_object_get(f->client, reference, 0, NULL, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_object_pin(f->client, reference, 0, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(cadre_client_object_free(f->client, reference, 0, &f->error), CADRE_CLIENT_OK);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "{\"method\":\"object.get\"} {\"$ref\":\"cadre:1:x\"}\n"), 1);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "{\"method\":\"object.pin\"} {\"$ref\":\"cadre:1:x\"}\n"), 1);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "{\"method\":\"object.free\"} {\"$ref\":\"cadre:1:x\"}\n"), 1);
}

// Calls that are refused here

static void requests_that_make_no_sense_are_refused(void **state)
{
    struct fixture *f = *state;
    const cadre_client_json per_rank[] = {J("1"), J("  ")};
    struct {
        cadre_client_request r;
        const char *says;
    } cases[18];
    open_client(f);
    for (size_t i = 0; i < 18; i++)
        cases[i].r = request_of("add");
    cases[0].r.method = NULL, cases[0].says = "the method of the call must be a name";
    cases[1].r.method = "a\"b", cases[1].says = "the method of the call must be a name";
    cases[2].r.group = "", cases[2].says = "the group of the call must be a name";
    cases[3].r.args = J("10"), cases[3].says = "add(): args must be a JSON list or object";
    cases[4].r.args = J("  "), cases[4].says = "add(): args must be a JSON list or object";
    cases[5].r.per_rank = per_rank, cases[5].r.n_per_rank = 2;
    cases[5].says = "add(): the arguments of rank 1 are empty";
    cases[6].r.per_rank = per_rank, cases[6].r.n_per_rank = 1, cases[6].r.args = J("[]");
    cases[6].says = "add(): set only one of args and per_rank";
    cases[7].r.rank = -2, cases[7].says = "add(): there is no rank -2";
    cases[8].r.rank = 1, cases[8].r.execute = CADRE_CLIENT_EXECUTE_ALL;
    cases[8].says = "add(): a call to one rank has no dispatch or execute mode";
    cases[9].r.timeout_ms = -1, cases[9].says = "add(): a negative attempt or timeout";
    cases[10].r.timeout_ms = INT64_MAX,
    cases[10].says = "add(): a negative attempt or timeout, or a timeout over 7 days";
    cases[11].r.n_per_rank = 2, cases[11].says = "add(): n_per_rank without per_rank";
    cases[12].r.batch = "[1, 2, 3]", cases[12].r.batch_len = 9;
    cases[12].says = "add(): the batch is neither a safetensors document";
    cases[13].r = cases[12].r, cases[13].r.args = J("[]"), cases[13].says = "add(): set only one of args and batch";
    cases[14].r.split = "{\"index\":[}", cases[14].says = "add(): `split` is not JSON";
    cases[15].r.role = "", cases[15].says = "the role of the call must be a name";
    cases[16].r.role = "a\"}", cases[16].says = "the role of the call must be a name";
    cases[17].r.via = "[", cases[17].says = "add(): `via` is not JSON";
    for (size_t i = 0; i < 18; i++) {
        assert_int_equal(cadre_client_start(f->client, &cases[i].r, NULL, &f->error), CADRE_CLIENT_INVALID);
        assert_int_equal(f->error.may_have_run, 0);
        assert_ptr_equal(strstr(f->error.message, cases[i].says), f->error.message);
        assert_int_equal(cadre_client_pending(f->client), 0);
    }
}

// Errors

static void an_error_tells_all_that_is_known(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    assert_string_equal(call_method(f, "fail", NULL), "UNAVAILABLE rank 2 of ml/llama exited with code 137");
    assert_string_equal(f->error.name, "UNAVAILABLE");
    assert_int_equal(f->error.rank, 2);
    assert_int_equal(f->error.exit_code, 137);
    assert_int_equal(f->error.retry_after_ms, 1500);
    assert_string_equal(f->error.pod, "llama-2-0");
    assert_string_equal(f->error.node, "n2");
    assert_int_equal(f->error.may_have_run, 1);
    assert_string_equal(call_method(f, "wait", NULL), "TIMEOUT not ready"); // the proxy says that it did not run
    assert_int_equal(f->error.may_have_run, 0);
}

static void refused_by_http(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    o.ns = "nobody";
    open_with(f, &o);
    call_method(f, "echo", NULL);
    assert_int_equal(f->error.code, CADRE_CLIENT_UNAUTHORIZED);
    assert_non_null(strstr(f->error.message, "echo() was not sent: "));
    assert_non_null(strstr(f->error.message, "HTTP status 401: no token"));
    assert_int_equal(f->error.may_have_run, 0);
    cadre_client_close(f->client);
    o.ns = "denied";
    open_with(f, &o);
    call_method(f, "echo", NULL);
    assert_int_equal(f->error.code, CADRE_CLIENT_FORBIDDEN);
    assert_non_null(strstr(f->error.message, "you may not call in namespace denied"));
    // A later call asks again; who may not now, may be allowed to meanwhile.
    size_t asked = sdk_proxy_saw(&f->proxy, "upgrade /v1/namespaces/denied");
    call_method(f, "echo", NULL);
    assert_int_equal(f->error.code, CADRE_CLIENT_FORBIDDEN);
    assert_true(sdk_proxy_saw(&f->proxy, "upgrade /v1/namespaces/denied") > asked);
}

static void refused_after_hello(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    o.token = "wrong";
    o.token_in_hello = 1;
    o.path_prefix = "/api/v1/proxy/";
    open_with(f, &o);
    call_method(f, "echo", NULL);
    assert_int_equal(f->error.code, CADRE_CLIENT_UNAUTHORIZED);
    assert_non_null(strstr(f->error.message, "nobody knows this token"));
    assert_true(sdk_proxy_saw(&f->proxy, "upgrade /api/v1/proxy/v1/namespaces/ml/workergroups/llama -\n") >= 1);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "Bearer"), 0);
}

static void the_token_travels_in_the_header(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    o.token = "abc";
    open_with(f, &o);
    assert_string_equal(call_method(f, "echo", NULL), "[]");
    assert_true(sdk_proxy_saw(&f->proxy, "llama Bearer abc\n") >= 1);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "llama -\n"), 0);
    assert_int_equal(sdk_proxy_saw(&f->proxy, "\"token\""), 0);
}

static void write_token(const char *path, const char *token)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "%s\n", token);
    fclose(out);
}

static void a_session_that_ends_is_renewed_with_the_token_of_then(void **state)
{
    struct fixture *f = *state;
    char path[128];
    cadre_client_options o = options_of(f);
    snprintf(path, sizeof path, "%s/token", f->proxy.dir);
    write_token(path, "first");
    sdk_proxy_start(&f->proxy, NULL, NULL);
    o.token_file = path;
    open_with(f, &o);
    assert_string_equal(call_method(f, "forget", NULL), "null");
    write_token(path, "second");
    until_saw(f, "upgrade /v1/namespaces/ml/workergroups/llama Bearer second\n", 1);
    assert_string_equal(call_method(f, "echo", NULL), "[]");
    assert_true(sdk_proxy_saw(&f->proxy, "Bearer first\n") >= 1);
}

// A connection that is lost

static void calls_in_doubt_fail_and_the_next_ones_work(void **state)
{
    struct fixture *f = *state;
    struct outcome mute = {0};
    open_client(f);
    call_method(f, "echo", NULL);
    start_method(f, "mute", &mute);
    call_method(f, "hang_up", NULL);
    assert_int_equal(f->error.code, CADRE_CLIENT_UNAVAILABLE);
    assert_non_null(strstr(f->error.message, "the connection to the proxy was lost while hang_up() was pending: it may "
                                             "have run"));
    assert_int_equal(f->error.may_have_run, 1);
    wait_for(f, &mute);
    assert_int_equal(mute.code, CADRE_CLIENT_UNAVAILABLE);
    assert_string_equal(call_method(f, "echo", "[7]"), "[7]");
    assert_int_equal(sdk_proxy_saw(&f->proxy, "CALL -1/0/0 {\"method\":\"mute\""), 1);
}

static void a_proxy_that_dies_is_never_silence(void **state)
{
    struct fixture *f = *state;
    struct outcome mute = {0}, echo = {0};
    open_client(f);
    call_method(f, "echo", NULL);
    start_method(f, "mute", &mute);
    until_saw(f, "\"mute\"", 1);
    sdk_proxy_stop(&f->proxy);
    wait_for(f, &mute);
    assert_int_equal(mute.error.may_have_run, 1);
    start_method(f, "echo", &echo);
    cadre_client_process(f->client);
    assert_int_equal(echo.n, 0);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    wait_for(f, &echo);
    assert_string_equal(echo.text, "[]");
}

static void calls_wait_for_a_proxy_that_is_not_there_yet(void **state)
{
    struct fixture *f = *state;
    struct outcome o[3] = {0};
    cadre_client_options options = options_of(f);
    open_with(f, &options);
    for (int i = 0; i < 3; i++)
        start_method(f, "echo", &o[i]);
    cadre_client_wait(f->client, 50);
    assert_int_equal(cadre_client_pending(f->client), 3);
    sdk_proxy_start(&f->proxy, NULL, NULL);
    for (int i = 0; i < 3; i++)
        wait_for(f, &o[i]);
    assert_true(o[0].id < o[1].id && o[1].id < o[2].id);
}

static void they_do_not_wait_for_ever(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    cadre_client_request r = request_of("echo");
    o.unreachable_ms = 100;
    open_with(f, &o);
    r.timeout_ms = 0;
    TURN_UNTIL(call(f, &r), strstr(f->error.message, "cannot connect to unix:"), f->error.message);
    assert_int_equal(f->error.code, CADRE_CLIENT_UNAVAILABLE);
    assert_non_null(strstr(f->error.message, "echo() was not sent within 100 ms: no connection to the proxy at unix:"));
    assert_non_null(strstr(f->error.message, ": nothing listens there, it has not begun or has ended"));
    assert_int_equal(f->error.may_have_run, 0);
    r.timeout_ms = 50;
    call(f, &r);
    assert_int_equal(f->error.code, CADRE_CLIENT_TIMEOUT);
    assert_int_equal(f->error.may_have_run, 0);
}

static void a_deadline_passes_here_too(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = request_of("mute");
    open_client(f);
    call_method(f, "echo", NULL); // now it is connected, and sends at once
    r.timeout_ms = 20;
    TURN_UNTIL(call(f, &r), f->error.may_have_run, f->error.message); // a slow machine may not send it in time
    assert_int_equal(f->error.code, CADRE_CLIENT_TIMEOUT);
    assert_non_null(strstr(f->error.message, "mute(): no answer within 20 ms"));
    until_saw(f, "CANCEL\n", 1); // and its late answer is nobody's
    assert_string_equal(call_method(f, "echo", "[1]"), "[1]");
}

static void a_proxy_that_says_goodbye_gets_no_new_calls(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    assert_string_equal(call_method(f, "goodbye", NULL), "null");
    assert_string_equal(call_method(f, "echo", NULL), "[]");
    assert_true(sdk_proxy_saw(&f->proxy, "HELLO") >= 2);
    until_saw(f, "closed 1001 the client has moved to another replica", 1);
}

static void no_welcome_is_no_connection(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    cadre_client_request r = request_of("echo");
    f->proxy.welcome = NULL;
    sdk_proxy_start(&f->proxy, NULL, NULL);
    o.connect_timeout_ms = 200;
    open_with(f, &o);
    r.timeout_ms = 50;
    TURN_UNTIL(call(f, &r), strstr(f->error.message, "no WELCOME from the proxy"), f->error.message);
    assert_int_equal(f->error.code, CADRE_CLIENT_TIMEOUT);
}

// A Service, or the API server in between, may lead the second one to another replica. The call does not last until the
// client gives up altogether.
static void a_connection_without_a_welcome_is_soon_given_up_for_another(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f);
    o.connect_timeout_ms = 2 * PATIENCE_MS;
    f->proxy.n_ignored = 1;
    sdk_proxy_start(&f->proxy, NULL, NULL);
    open_with(f, &o);
    assert_string_equal(call_method(f, "echo", "[1]"), "[1]");
    assert_true(sdk_proxy_saw(&f->proxy, "HELLO") >= 2);
}

// Cancel

static void a_call_that_was_sent_is_canceled_by_the_proxy(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {0};
    open_client(f);
    call_method(f, "echo", NULL);
    uint64_t id = start_method(f, "mute", &o);
    assert_int_equal(cadre_client_cancel(f->client, id), CADRE_CLIENT_OK);
    assert_int_equal(o.n, 0);
    wait_for(f, &o);
    assert_int_equal(o.code, CADRE_CLIENT_CANCELED);
    assert_string_equal(o.text, "mute() was canceled");
    assert_int_equal(cadre_client_cancel(f->client, id), CADRE_CLIENT_NOT_FOUND);
}

static void a_call_that_was_not_sent_is_canceled_here(void **state)
{
    struct fixture *f = *state;
    struct outcome first = {.f = f}, second = {0};
    cadre_client_options options = options_of(f);
    open_with(f, &options);
    uint64_t id = start_method(f, "echo", &first);
    first.to_cancel = start_method(f, "echo", &second); // by the callback of the first
    assert_int_equal(cadre_client_cancel(f->client, id), CADRE_CLIENT_OK);
    assert_int_equal(first.n, 0);
    wait_for(f, &first);
    wait_for(f, &second);
    assert_int_equal(second.code, CADRE_CLIENT_CANCELED);
    assert_int_equal(second.error.may_have_run, 0);
    assert_non_null(strstr(second.text, "before it was sent"));
}

static void closing_answers_what_is_open(void **state)
{
    struct fixture *f = *state;
    struct outcome sent = {0};
    open_client(f);
    call_method(f, "echo", NULL);
    start_method(f, "mute", &sent);
    until_saw(f, "\"mute\"", 1);
    cadre_client_close(f->client);
    f->client = NULL;
    assert_int_equal(sent.n, 1);
    assert_int_equal(sent.code, CADRE_CLIENT_CANCELED);
    assert_int_equal(sent.error.may_have_run, 1);
    TURN_UNTIL(poll(NULL, 0, 5), sdk_proxy_saw(&f->proxy, "closed 1000 the client ends"), sent.text);
}

// TLS

static void tls_checks_who_it_is(void **state)
{
    struct fixture *f = *state;
    struct certs certs;
    certs_make(&certs);
    sdk_proxy_start(&f->proxy, certs.server_cert, certs.server_key);
    cadre_client_options o = options_of(f);
    o.ca_pem = certs.ca;
    open_with(f, &o);
    assert_string_equal(call_method(f, "echo", "[1]"), "[1]");
    cadre_client_close(f->client);
    o.ca_pem = certs.other_ca;
    open_with(f, &o);
    call_method(f, "echo", NULL);
    assert_int_equal(f->error.code, CADRE_CLIENT_FORBIDDEN);
    certs_done(&certs);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_call_brings_its_result),
        T(hello_says_who_and_whom),
        T(the_head_has_what_the_caller_asks_for),
        T(a_call_to_one_rank),
        T(arguments_for_each_rank_make_a_list),
        T(a_list_for_no_rank_is_not_a_call_without_arguments),
        T(waiting_has_no_limit),
        T(info_is_a_call_of_its_own_method),
        T(a_call_says_for_which_role_it_is),
        T(a_rank_is_killed_by_a_call_to_it),
        T(an_object_is_put_where_the_request_says),
        T(references_are_arguments_of_what_is_done_with_them),
        T(requests_that_make_no_sense_are_refused),
        T(an_error_tells_all_that_is_known),
        T(refused_by_http),
        T(refused_after_hello),
        T(the_token_travels_in_the_header),
        T(a_session_that_ends_is_renewed_with_the_token_of_then),
        T(calls_in_doubt_fail_and_the_next_ones_work),
        T(a_proxy_that_dies_is_never_silence),
        T(calls_wait_for_a_proxy_that_is_not_there_yet),
        T(they_do_not_wait_for_ever),
        T(a_deadline_passes_here_too),
        T(a_proxy_that_says_goodbye_gets_no_new_calls),
        T(no_welcome_is_no_connection),
        T(a_connection_without_a_welcome_is_soon_given_up_for_another),
        T(a_call_that_was_sent_is_canceled_by_the_proxy),
        T(a_call_that_was_not_sent_is_canceled_here),
        T(closing_answers_what_is_open),
        T(tls_checks_who_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
