// SPDX-License-Identifier: Apache-2.0
// The election on its thread, against an API server over sockets. The server has its own loop. A test can block the
// operator's loop. test_leader.c and test_leader_fsm.c test what a leader decides.
#include "operator/runtime/election.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/support/kube_fixture.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct {
    struct kube_fixture *api; // the server, on a loop that always turns
    struct loop *loop;        // the operator's
    struct election *election;
    char trace[4096];
    char holder[64]; // the holder in the Lease; "" = nobody
    int version, writes;
    int reads; // of the Lease; only a replica that does not lead reads it
    bool down;
    int observed;
    char lease[512];
} t;

static void note(const char *what)
{
    size_t used = strlen(t.trace);
    snprintf(t.trace + used, sizeof t.trace - used, "%s ", what);
}

static void on_news(void *ctx, const struct leader_news *news)
{
    (void)ctx;
    if (news->lost)
        note("lost");
    if (news->elected)
        note("elected");
    if (news->disbelieved)
        note("disbelieved");
    if (news->holder)
        note(news->holder);
    if (news->away_ms)
        note("recovered");
}

static void on_released(void *ctx)
{
    (void)ctx;
    t.election = NULL;
    note("released");
}

static void observe(void *ctx, const char *method, int http_status, int64_t micros)
{
    (void)ctx, (void)http_status;
    assert_true(str_eq(method, "GET") || str_eq(method, "POST") || str_eq(method, "PUT"));
    assert_true(micros >= 0);
    t.observed++;
}

// A Lease that belongs to the last writer.
static bool serve(void *ctx, const struct fakeapi_request *r, struct fakeapi_rule *ret)
{
    (void)ctx;
    t.reads += str_eq(r->method, "GET");
    if (t.down) {
        *ret = (struct fakeapi_rule){.status = 500, .body = "{}"};
        return true;
    }
    if (!str_eq(r->method, "GET")) {
        bool released = strstr(r->body, "\"holderIdentity\":\"\"") || !strstr(r->body, "holderIdentity");
        snprintf(t.holder, sizeof t.holder, "%s", released ? "" : "me");
        t.version++;
        t.writes++;
    } else if (t.version == 0) {
        return false; // 404
    }
    snprintf(t.lease, sizeof t.lease,
             "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"cadre-operator\",\"namespace\":\"cadre-system\","
             "\"resourceVersion\":\"%d\"},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,"
             "\"leaseTransitions\":1}}",
             t.version, t.holder);
    *ret = (struct fakeapi_rule){.body = t.lease};
    return true;
}

static void start(int64_t renew_deadline_ms)
{
    struct err err = ERR_INIT;
    struct election_options options = {
        .leader = {.ns = "cadre-system",
                   .name = "cadre-operator",
                   .identity = "me",
                   .renew_deadline_ms = renew_deadline_ms,
                   .retry_ms = 2,
                   .news = on_news,
                   .seed = 1},
        .config = &t.api->config,
        .observe = observe,
    };
    t.election = election_start(t.loop, &options, &err);
    assert_non_null(t.election);
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.api = fixture_new(false);
    fakeapi_handler(t.api->api, serve, NULL);
    t.loop = loop_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    election_free(t.election);
    loop_free(t.loop);
    fixture_free(t.api);
    return 0;
}

static void both_turn(void)
{
    loop_run_once(t.api->loop, 1);
    loop_run_once(t.loop, 0);
}

static void become_leader(void)
{
    TURN_UNTIL(both_turn(), election_may_write(t.election), t.trace);
    assert_true(election_is_leading(t.election));
    t.trace[0] = '\0';
}

static void it_is_elected_and_its_requests_are_observed(void **state)
{
    (void)state;
    start(PATIENCE_MS);
    become_leader();
    TURN_UNTIL(both_turn(), t.writes >= 3 && t.observed >= 3, t.trace);
    assert_string_equal(t.trace, "");
}

static void the_lease_is_renewed_while_the_loop_of_the_operator_stands_still(void **state)
{
    (void)state;
    start(PATIENCE_MS);
    become_leader();
    int before = t.writes;
    TURN_UNTIL(loop_run_once(t.api->loop, 1), t.writes >= before + 100, t.trace);
    assert_true(election_may_write(t.election));
    for (int i = 0; i < 10; i++)
        loop_run_once(t.loop, 0);
    assert_string_equal(t.trace, "");
}

static void a_leader_that_has_not_heard_yet_that_it_lost_writes_nothing(void **state)
{
    (void)state;
    start(60);
    become_leader();
    t.down = true;
    TURN_UNTIL(loop_run_once(t.api->loop, 1), !election_may_write(t.election), t.trace);
    assert_true(election_is_leading(t.election)); // the operator's loop has not heard of it
    TURN_UNTIL(both_turn(), strstr(t.trace, "lost "), t.trace);
    assert_false(election_is_leading(t.election));
}

static void a_term_that_it_has_not_heard_of_is_not_written_in(void **state)
{
    (void)state;
    start(60);
    become_leader();
    t.down = true;
    int reads = t.reads;
    TURN_UNTIL(loop_run_once(t.api->loop, 1), t.reads > reads, t.trace);
    t.down = false;
    int before = t.writes;
    TURN_UNTIL(loop_run_once(t.api->loop, 1), t.writes >= before + 3, t.trace); // it leads again
    assert_false(election_may_write(t.election));
    TURN_UNTIL(both_turn(), strstr(t.trace, "elected "), t.trace);
    // On a busy machine, it may lose the Lease several times.
    assert_true(str_starts(t.trace, "lost "));
}

static void the_lease_is_released(void **state)
{
    (void)state;
    start(PATIENCE_MS);
    become_leader();
    election_release(t.election, on_released, NULL);
    TURN_UNTIL(both_turn(), !t.election, t.trace);
    assert_string_equal(t.trace, "released ");
    assert_string_equal(t.holder, "");
}

static void it_ends_at_once_where_the_server_is_silent(void **state)
{
    (void)state;
    fakeapi_handler(t.api->api, NULL, NULL);
    fakeapi_rule(t.api->api, &(struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    start(PATIENCE_MS);
    TURN_UNTIL(both_turn(), fakeapi_count(t.api->api) > 0, t.trace);
    election_free(TAKE_PTR(t.election));
    assert_string_equal(t.trace, "");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_elected_and_its_requests_are_observed),
        TEST(the_lease_is_renewed_while_the_loop_of_the_operator_stands_still),
        TEST(a_leader_that_has_not_heard_yet_that_it_lost_writes_nothing),
        TEST(a_term_that_it_has_not_heard_of_is_not_written_in),
        TEST(the_lease_is_released),
        TEST(it_ends_at_once_where_the_server_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
