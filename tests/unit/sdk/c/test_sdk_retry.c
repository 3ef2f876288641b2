// SPDX-License-Identifier: Apache-2.0
// Calls that are sent again, because their client asked for it.
#include "common/base/clock.h"
#include "tests/unit/sdk/c/sdk_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static cadre_client_request retried(const char *method, uint32_t max, const char *on)
{
    cadre_client_request r = request_of(method);
    r.max_retries = max;
    r.retry_on = on;
    return r;
}

static size_t calls_of(struct fixture *f, const char *head)
{
    return sdk_proxy_saw(&f->proxy, head);
}

static void without_asking_nothing_is_sent_twice(void **state)
{
    struct fixture *f = *state;
    open_client(f);
    assert_string_equal(call_method(f, "busy", NULL), "THROTTLED too many calls");
    assert_string_equal(call_method(f, "raise", NULL), "FAILED no such file");
    assert_int_equal(calls_of(f, "{\"method\":\"busy\""), 1);
    assert_int_equal(calls_of(f, "{\"method\":\"raise\""), 1);
}

static void what_cannot_have_run_is_sent_again(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("busy", 3, NULL);
    open_client(f);
    r.args = J("[1, 2]");
    assert_string_equal(call(f, &r), "\"at last\"");
    assert_int_equal(calls_of(f, "[1, 2]\n"), 4);
}

static void the_last_error_is_the_caller_s(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("busy", 2, NULL);
    open_client(f);
    assert_string_equal(call(f, &r), "THROTTLED too many calls");
    assert_int_equal(f->error.may_have_run, 0);
    assert_int_equal(calls_of(f, "{\"method\":\"busy\""), 3);
}

static void a_method_that_fails_is_retried_three_times_then_its_error_is_raised(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("raise", 3, "NO_DEVICE,FAILED");
    open_client(f);
    assert_string_equal(call(f, &r), "FAILED no such file");
    assert_int_equal(f->error.rank, 1);
    assert_int_equal(f->error.may_have_run, 1);
    assert_int_equal(calls_of(f, "{\"method\":\"raise\""), 4);
}

static void an_error_that_is_not_named_is_final(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("raise", 3, "NO_DEVICE,FAILED_TO_START");
    open_client(f);
    assert_string_equal(call(f, &r), "FAILED no such file");
    assert_int_equal(calls_of(f, "{\"method\":\"raise\""), 1);
}

static void failed_stands_for_every_error_of_a_method(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("raise_value_error", 2, "FAILED");
    open_client(f);
    call(f, &r);
    assert_string_equal(f->error.name, "ValueError");
    assert_int_equal(calls_of(f, "{\"method\":\"raise_value_error\""), 3);
    r = retried("raise_value_error", 1, "KeyError,ValueError");
    call(f, &r);
    assert_int_equal(calls_of(f, "{\"method\":\"raise_value_error\""), 5);
}

static void a_call_in_doubt_is_sent_again_only_if_it_is_idempotent(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("hang_up_once", 1, NULL);
    open_client(f);
    r.idempotent = 1;
    assert_string_equal(call(f, &r), "\"hang_up_once\"");
    assert_true(calls_of(f, "HELLO") >= 2);
    r = retried("hang_up", 3, NULL);
    call(f, &r);
    assert_int_equal(f->error.code, CADRE_CLIENT_UNAVAILABLE);
    assert_int_equal(f->error.may_have_run, 1);
    assert_int_equal(calls_of(f, "{\"method\":\"hang_up\""), 1);
}

static void what_the_server_asks_for_is_waited_for(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("fail", 1, NULL); // its error asks for 1.5 s
    open_client(f);
    r.idempotent = 1;
    int64_t before = clock_mono_ms(&clock_system);
    assert_string_equal(call(f, &r), "UNAVAILABLE rank 2 of ml/llama exited with code 137");
    assert_true(clock_mono_ms(&clock_system) - before >= 1500);
    assert_int_equal(calls_of(f, "{\"method\":\"fail\""), 2);
}

static void a_try_that_would_come_after_the_deadline_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("later", 3, NULL);
    open_client(f);
    r.idempotent = 1;
    r.timeout_ms = 2900 * 1000;
    assert_string_equal(call(f, &r), "UNAVAILABLE a rank died");
    assert_int_equal(calls_of(f, "{\"method\":\"later\""), 1);
}

static void a_call_between_two_tries_can_be_canceled(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {0};
    cadre_client_request r = retried("later", 3, NULL);
    open_client(f);
    r.idempotent = 1;
    r.timeout_ms = 0;
    uint64_t id = start(f, r, &o);
    until_saw(f, "{\"method\":\"later\"", 1);
    call_method(f, "echo", NULL); // the answer to the first is in by now
    assert_int_equal(o.n, 0);
    assert_int_equal(cadre_client_cancel(f->client, id), CADRE_CLIENT_OK);
    wait_for(f, &o);
    assert_string_equal(o.text, "later() was canceled by its client before it was sent again; it may have run");
    assert_int_equal(o.error.may_have_run, 1);
    assert_int_equal(calls_of(f, "{\"method\":\"later\""), 1);
}

static void closing_answers_a_call_between_two_tries(void **state)
{
    struct fixture *f = *state;
    struct outcome o = {0};
    cadre_client_request r = retried("later", 3, NULL);
    open_client(f);
    r.idempotent = 1;
    r.timeout_ms = 0;
    start(f, r, &o);
    until_saw(f, "{\"method\":\"later\"", 1);
    call_method(f, "echo", NULL);
    cadre_client_close(f->client);
    f->client = NULL;
    assert_int_equal(o.n, 1);
    assert_int_equal(o.code, CADRE_CLIENT_CANCELED);
    assert_int_equal(o.error.may_have_run, 1);
}

static void a_call_that_could_not_be_sent_in_time_is_no_try(void **state)
{
    struct fixture *f = *state;
    cadre_client_options o = options_of(f); // nobody listens
    cadre_client_request r = retried("echo", 1000, NULL);
    o.unreachable_ms = 50;
    r.timeout_ms = 0;
    open_with(f, &o);
    call(f, &r);
    assert_int_equal(f->error.code, CADRE_CLIENT_UNAVAILABLE);
    assert_int_equal(f->error.may_have_run, 0);
}

static void when_without_how_often_is_refused(void **state)
{
    struct fixture *f = *state;
    cadre_client_request r = retried("echo", 0, "FAILED");
    open_client(f);
    assert_string_equal(call(f, &r), "INVALID echo(): retry_on or idempotent needs max_retries");
    static const char *const wrong[] = {"", "FAILED,", ",FAILED", "FAILED NO_DEVICE", "failed"};
    for (size_t i = 0; i < 5; i++) {
        r = retried("echo", 1, wrong[i]);
        assert_string_equal(call(f, &r),
                            "INVALID echo(): retry_on must be names of errors, such as \"FAILED,NO_DEVICE\"");
    }
    assert_int_equal(cadre_client_pending(f->client), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(without_asking_nothing_is_sent_twice),
        T(what_cannot_have_run_is_sent_again),
        T(the_last_error_is_the_caller_s),
        T(a_method_that_fails_is_retried_three_times_then_its_error_is_raised),
        T(an_error_that_is_not_named_is_final),
        T(failed_stands_for_every_error_of_a_method),
        T(a_call_in_doubt_is_sent_again_only_if_it_is_idempotent),
        T(what_the_server_asks_for_is_waited_for),
        T(a_try_that_would_come_after_the_deadline_is_not_waited_for),
        T(a_call_between_two_tries_can_be_canceled),
        T(closing_answers_a_call_between_two_tries),
        T(a_call_that_could_not_be_sent_in_time_is_no_try),
        T(when_without_how_often_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
