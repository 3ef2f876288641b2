// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/outage.h"

#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct outage *outage;
    int over;
    int64_t away_ms;
} t;

static void on_over(void *ctx, int64_t away_ms)
{
    (void)ctx;
    t.over++;
    t.away_ms = away_ms;
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    t.outage = outage_new(t.loop, t.client, "ml", on_over, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stub_client_free(t.client);
    outage_free(t.outage);
    loop_free(t.loop);
    return 0;
}

static struct stub_call *asked(void)
{
    while (!stub_waiting(t.client))
        loop_run_once(t.loop, OUTAGE_ASK_MS);
    struct stub_call *call = stub_next(t.client);
    assert_int_equal(call->request.verb, VERB_LIST);
    assert_int_equal(call->request.kind, KIND_WORKERGROUP);
    assert_string_equal(call->request.ns, "ml");
    assert_int_equal(call->request.limit, 1);
    return call;
}

static void nobody_is_asked_without_a_suspicion(void **state)
{
    (void)state;
    assert_true(stub_quiet(t.client));
}

static void a_watch_that_fails_for_a_reason_of_its_own_is_no_outage(void **state)
{
    (void)state;
    outage_suspect(t.outage);
    stub_answer(asked(), 200, "{}");
    outage_suspect(t.outage);
    stub_answer(asked(), 403, "{}"); // this is an answer, too
    assert_true(stub_quiet(t.client));
    assert_int_equal(t.over, 0);
}

static void it_is_asked_until_it_answers_and_its_return_is_told_once(void **state)
{
    (void)state;
    outage_suspect(t.outage);
    outage_suspect(t.outage); // as by all six watches
    stub_fail(asked(), ERR_UNAVAILABLE, "connection refused");
    assert_int_equal(stub_waiting(t.client), 0);
    outage_suspect(t.outage);
    stub_fail(asked(), ERR_TIMEOUT, "no answer");
    stub_answer(asked(), 503, "{}"); // the server is starting, and has no etcd yet
    assert_int_equal(t.over, 0);
    stub_answer(asked(), 200, "{}");
    assert_int_equal(t.over, 1);
    assert_true(t.away_ms >= 2 * OUTAGE_ASK_MS); // it was asked three times before
    assert_true(stub_quiet(t.client));
}

static void each_outage_is_one(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++) {
        outage_suspect(t.outage);
        stub_fail(asked(), ERR_UNAVAILABLE, "connection refused");
        stub_answer(asked(), 200, "{}");
        assert_int_equal(t.over, i);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(nobody_is_asked_without_a_suspicion),
        T(a_watch_that_fails_for_a_reason_of_its_own_is_no_outage),
        T(it_is_asked_until_it_answers_and_its_return_is_told_once),
        T(each_outage_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
