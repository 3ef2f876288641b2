// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/tenant.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define DAYS "{\"method\":\"add\",\"timeoutMs\":518400000}"

static void other_group(struct world *w)
{
    const struct group_facts facts = {
        .uid = "uid-2", .ns = "web", .name = "llama", .world = 1, .attempt = 1, .oldest = 1};
    router_group_set(&w->f.router, &facts);
}

// Calls of this client wait, until it hears an error, which is returned.
static const char *fills(struct client *c, const char *args, uint32_t calls)
{
    struct err err = ERR_INIT;
    const char *got = NULL;
    for (uint32_t id = 1; id <= calls && !got; id++) {
        struct call_text call = {.id = id, .rank = RECORD_GROUP, .head = DAYS, .args = args};
        assert_int_equal(client_send(c, &call, &err), 0);
        got = client_hears(c);
    }
    return got;
}

static size_t fill(struct client *c)
{
    size_t n = quota_left(c->session->quota);
    assert_true(quota_charge(c->session->quota, n));
    return n;
}

static void a_namespace_holds_no_more_bytes_than_are_left_to_others(void **state)
{
    struct world *w = *state;
    struct client more[3], other;
    struct err err = ERR_INIT;
    struct call_text call = {.id = 1, .rank = RECORD_GROUP, .head = DAYS, .args = "[]"};
    size_t held[3];
    other_group(w);
    for (int i = 0; i < 3; i++) {
        client_open(&w->f, &more[i], "llama");
        held[i] = fill(&more[i]);
    }
    assert_int_equal(quota_used(w->f.router.bytes), fixture_limits.total_bytes / 2);
    sends_group(w, 1, ADD, "[]");
    hears(w, "1 ERROR THROTTLED the calls and answers of namespace ml take 33554432 bytes here, and its share has room "
             "for no more; *");
    client_open_in(&w->f, &other, "web", "llama"); // has room all the same
    assert_int_equal(client_send(&other, &call, &err), 0);
    assert_null(client_hears(&other));
    for (int i = 0; i < 3; i++) {
        quota_refund(more[i].session->quota, held[i]);
        client_close(&more[i]);
    }
    client_close(&other);
    assert_int_equal(quota_used(w->f.router.bytes), 0);
}

static void who_reads_no_answers_is_not_read_once_they_fill_the_share(void **state)
{
    struct world *w = *state;
    struct client mute, other;
    struct err err = ERR_INIT;
    struct call_text call = {.rank = RECORD_GROUP, .head = "{\"method\":\"add\",\"group\":\"none\"}", .args = "[]"};
    client_open(&w->f, &mute, "llama");
    client_open_in(&w->f, &other, "web", "llama");
    size_t left = quota_left(mute.session->quota) - 10000;
    assert_true(quota_charge(mute.session->quota, left)); // as by results that wait for other ranks
    mute.session->parked = left;
    uint32_t asked = 0;
    for (; mute.session->peer.read && asked < 1000; asked++) {
        call.id = asked + 1;
        assert_int_equal(client_send(&mute, &call, &err), 0);
    }
    assert_in_range(asked, 10, 100);
    assert_true(quota_left(mute.session->quota) < 1000);
    assert_true(other.session->peer.read);
    quota_refund(mute.session->quota, left);
    mute.session->parked = 0;
    router_turn(&w->f.router);
    assert_false(mute.session->peer.read); // what there was no room for still waits
    for (uint32_t id = 1; id <= asked; id++)
        assert_non_null(strstr(client_hears(&mute), "NOT_FOUND"));
    router_turn(&w->f.router);
    assert_true(mute.session->peer.read);
    client_close(&mute);
    client_close(&other);
}

static void a_namespace_has_no_more_calls_than_are_left_to_others(void **state)
{
    struct world *w = *state;
    struct client more[8], other;
    const char *got = NULL;
    uint32_t share = fixture_limits.total_calls / 2;
    other_group(w);
    for (int i = 0; i < 8; i++) {
        client_open(&w->f, &more[i], "llama");
        if (!got)
            got = fills(&more[i], "[]", fixture_limits.session_calls);
    }
    assert_string_equal(got,
                        "1 ERROR THROTTLED the clients of namespace ml have 600 calls in progress here, which is its "
                        "share of the 600 that are free; wait for some of them, or add replicas of the operator");
    assert_int_equal(w->f.router.n_calls, share);
    client_open_in(&w->f, &other, "web", "llama");
    assert_null(fills(&other, "[]", fixture_limits.session_calls));
    client_close(&other);
    sends_group(w, 1, ADD, "[]"); // what the other gave back is there again
    hears(w, "1 ERROR THROTTLED*");
    client_close(&more[0]);
    sends_group(w, 1, ADD, "[]");
    hears_nothing(w);
    for (int i = 1; i < 8; i++)
        client_close(&more[i]);
}

static void no_call_waits_longer_than_the_longest_wait(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, DAYS, "[]");
    fixture_pass(&w->f, fixture_limits.task_wait_ms - 1);
    hears_nothing(w);
    fixture_pass(&w->f, 1);
    hears(w, "1 ERROR TIMEOUT add() of ml/llama: not done within 3600000 ms: *");
}

static void a_call_that_runs_has_all_the_time_that_it_was_given(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, DAYS, "[]"); // it waits a while, and then runs
    fixture_pass(&w->f, 1000);
    for (uint32_t i = 0; i < WORLD; i++)
        worker_start(&w->f, &w->workers[i], i, 1);
    assert_true(worker_takes(&w->workers[0], "[]"));
    fixture_pass(&w->f, 2 * fixture_limits.task_wait_ms);
    hears_nothing(w);
    fixture_pass(&w->f, 518400000);
    hears(w, "1 ERROR TIMEOUT add() of ml/llama: not done within 518400000 ms: no answer from ranks*");
}

static void a_fair_quota_leaves_as_much_as_it_takes(void **state)
{
    struct quota *all = quota_new(90, NULL), *one = quota_new_fair(all), *two = quota_new_fair(all);
    (void)state;
    assert_true(quota_charge(one, 45));
    assert_false(quota_charge(one, 1));
    assert_int_equal(quota_left(two), 22);
    assert_true(quota_charge(two, 22));
    assert_false(quota_charge(two, 1));
    quota_refund(one, 45); // given back: who is alone may have half again
    assert_true(quota_charge(two, 23));
    assert_false(quota_charge(two, 1));
    quota_refund(two, 45);
    quota_unref(one);
    quota_unref(two);
    quota_unref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST_EMPTY(a_namespace_holds_no_more_bytes_than_are_left_to_others),
        PROXY_TEST_EMPTY(who_reads_no_answers_is_not_read_once_they_fill_the_share),
        PROXY_TEST_EMPTY(a_namespace_has_no_more_calls_than_are_left_to_others),
        PROXY_TEST_EMPTY(no_call_waits_longer_than_the_longest_wait),
        PROXY_TEST_EMPTY(a_call_that_runs_has_all_the_time_that_it_was_given),
        cmocka_unit_test(a_fair_quota_leaves_as_much_as_it_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
