// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/leader.h"

#include "common/base/str.h"
#include "tests/unit/support/patience.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct leader *leader;
    char trace[8192];
    bool free_in_callback;
} t;

static void note(const char *what)
{
    size_t used = strlen(t.trace);
    snprintf(t.trace + used, sizeof t.trace - used, "%s ", what);
    if (t.free_in_callback) {
        leader_free(t.leader);
        t.leader = NULL;
    }
}

static void on_news(void *ctx, const struct leader_news *news)
{
    (void)ctx;
    if (news->error)
        note(err_name(news->error->code));
    if (news->lost)
        note("lost");
    if (news->elected)
        note("elected");
    if (news->disbelieved) {
        assert_int_equal(news->disbelieved_ms, 3600000);
        note("not");
        note(news->disbelieved);
    }
    if (news->holder)
        note(news->holder);
    if (news->restored)
        note("restored");
    if (news->away_ms)
        note("recovered");
}

static void on_released(void *ctx)
{
    (void)ctx;
    t.leader = NULL;
    note("released");
}

static void start(int64_t renew_deadline_ms)
{
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    t.leader = leader_start(t.loop, t.client,
                            &(struct leader_options){.ns = "cadre-system",
                                                     .name = "cadre-operator",
                                                     .identity = "me",
                                                     .renew_deadline_ms = renew_deadline_ms,
                                                     .retry_ms = 2,
                                                     .news = on_news,
                                                     .seed = 1});
}

static int setup(void **state)
{
    (void)state;
    start(PATIENCE_MS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    leader_free(t.leader);
    stub_client_free(t.client);
    loop_free(t.loop);
    return 0;
}

static bool leads(void)
{
    return leader_writes_until_ms(t.leader) > 0;
}

static const char *lease_json(const char *version, const char *holder)
{
    static char text[512];
    snprintf(text, sizeof text,
             "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"cadre-operator\",\"namespace\":\"cadre-system\","
             "\"resourceVersion\":\"%s\"},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,"
             "\"leaseTransitions\":1}}",
             version, holder);
    return text;
}

static struct stub_call *expect(enum verb verb)
{
    struct stub_call *call = stub_next(t.client);
    assert_non_null(call);
    assert_int_equal(call->request.verb, verb);
    assert_int_equal(call->request.kind, KIND_LEASE);
    assert_string_equal(call->request.ns, "cadre-system");
    assert_string_equal(call->request.name, "cadre-operator");
    return call;
}

static void become_leader(void)
{
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_CREATE), 201, lease_json("1", "me"));
    assert_true(leads());
    assert_string_equal(t.trace, "elected ");
    t.trace[0] = '\0';
}

static void it_is_elected_and_renews(void **state)
{
    (void)state;
    assert_false(leads());
    become_leader();
    for (int i = 0; i < 3; i++) {
        struct stub_call *call = expect(VERB_UPDATE);
        assert_non_null(strstr(call->request.body, "\"holderIdentity\":\"me\""));
        assert_int_equal(call->timeout_ms, PATIENCE_MS / 3); // three tries fit into the deadline
        stub_answer(call, 200, lease_json("2", "me"));
    }
    assert_string_equal(t.trace, "");
}

static void it_follows_and_says_whom(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        stub_answer(expect(VERB_GET), 200, lease_json("1", "you"));
    stub_answer(expect(VERB_GET), 200, lease_json("2", "she"));
    assert_string_equal(t.trace, "you she ");
    assert_false(leads());
}

// A watch from the version before the backup would show nothing for a long time.
static void an_older_record_means_a_restored_backup(void **state)
{
    (void)state;
    stub_answer(expect(VERB_GET), 200, lease_json("100", "you"));
    stub_answer(expect(VERB_GET), 200, lease_json("101", "you"));
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_GET), 200, lease_json("102", "you"));
    assert_string_equal(t.trace, "you ");
    stub_answer(expect(VERB_GET), 200, lease_json("99", "you"));
    assert_string_equal(t.trace, "you restored ");
    stub_answer(expect(VERB_GET), 200, lease_json("100", "you"));
    assert_string_equal(t.trace, "you restored ");
}

static void errors_are_told_but_races_are_not(void **state)
{
    (void)state;
    stub_fail(expect(VERB_GET), ERR_FORBIDDEN, "no");
    stub_answer(expect(VERB_GET), 200, "{\"kind\":\"Pod\"}"); // this is not a Lease
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_CREATE), 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    stub_answer(expect(VERB_GET), 200, lease_json("5", ""));
    stub_answer(expect(VERB_UPDATE), 409, "{\"kind\":\"Status\",\"reason\":\"Conflict\"}");
    assert_string_equal(t.trace, "FORBIDDEN INVALID recovered ");
    stub_answer(expect(VERB_GET), 200, lease_json("6", ""));
    struct stub_call *call = expect(VERB_UPDATE);
    assert_non_null(strstr(call->request.body, "\"resourceVersion\":\"6\""));
    assert_non_null(strstr(call->request.body, "\"leaseTransitions\":2"));
    stub_answer(call, 200, lease_json("7", "me"));
    assert_true(leads());
}

// A short deadline may pass too early on a machine that stands still. Then this tries a longer one.
static void within_a_short_deadline(bool (*holds)(void))
{
    int64_t deadline_ms = 30;
    do {
        deadline_ms *= 2;
        if (deadline_ms > PATIENCE_MS)
            fail_msg("it does not hold. %s", t.trace);
        teardown(NULL);
        start(deadline_ms);
    } while (!holds());
}

static bool becomes_leader(void)
{
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_CREATE), 201, lease_json("1", "me"));
    bool good = leads() && str_eq(t.trace, "elected ");
    t.trace[0] = '\0';
    return good;
}

static bool fails_to_renew(void)
{
    if (!becomes_leader())
        return false;
    while (leads()) {
        struct stub_call *call = stub_quiet(t.client) ? NULL : stub_next(t.client);
        if (call)
            stub_fail(call, ERR_UNAVAILABLE, "down");
    }
    if (!str_starts(t.trace, "UNAVAILABLE UNAVAILABLE ") || !strstr(t.trace, " lost "))
        return false;
    t.trace[0] = '\0';
    stub_answer(expect(VERB_GET), 200, lease_json("1", "me")); // it continues to try, and leads again
    stub_answer(expect(VERB_UPDATE), 200, lease_json("2", "me"));
    return leads() && str_eq(t.trace, "recovered elected ");
}

static void it_has_lost_when_renewals_fail_for_too_long(void **state)
{
    (void)state;
    within_a_short_deadline(fails_to_renew);
}

static bool hangs_while_it_renews(void)
{
    struct stub_call *call = becomes_leader() ? stub_next(t.client) : NULL;
    if (!call || call->request.verb != VERB_UPDATE)
        return false;
    while (leads())
        loop_run_once(t.loop, 100);
    if (!str_eq(t.trace, "lost "))
        return false;
    for (int64_t until = clock_mono_ms(&clock_system) + 60; clock_mono_ms(&clock_system) < until;)
        loop_run_once(t.loop, 10);
    stub_answer(call, 200, lease_json("2", "me")); // too late
    assert_false(leads());
    stub_answer(expect(VERB_GET), 200, lease_json("2", "me"));
    stub_answer(expect(VERB_UPDATE), 200, lease_json("3", "me"));
    return leads();
}

static void it_has_lost_when_a_renewal_hangs(void **state)
{
    (void)state;
    within_a_short_deadline(hangs_while_it_renews);
}

static void the_lease_is_released(void **state)
{
    (void)state;
    become_leader();
    leader_release(t.leader, on_released, NULL);
    assert_string_equal(t.trace, ""); // not inside the caller
    assert_false(leads());
    struct stub_call *call = expect(VERB_UPDATE);
    assert_non_null(strstr(call->request.body, "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,"));
    stub_answer(call, 200, lease_json("2", ""));
    assert_string_equal(t.trace, "released ");
}

static void a_renewal_on_its_way_is_waited_for_before_the_lease_is_released(void **state)
{
    (void)state;
    become_leader();
    struct stub_call *renewal = expect(VERB_UPDATE);
    leader_release(t.leader, on_released, NULL);
    for (int i = 0; i < 5; i++)
        loop_run_once(t.loop, 1);
    stub_answer(renewal, 200, lease_json("8", "me"));
    struct stub_call *call = expect(VERB_UPDATE);
    assert_non_null(strstr(call->request.body, "\"resourceVersion\":\"8\""));
    assert_non_null(strstr(call->request.body, "\"holderIdentity\":\"\""));
    stub_fail(call, ERR_CONFLICT, "taken"); // best effort
    assert_string_equal(t.trace, "released ");
}

static void a_follower_has_nothing_to_release(void **state)
{
    (void)state;
    stub_answer(expect(VERB_GET), 200, lease_json("1", "you"));
    t.trace[0] = '\0';
    leader_release(t.leader, on_released, NULL);
    for (int i = 0; i < 50 && t.leader; i++) {
        struct stub_call *call = stub_quiet(t.client) ? NULL : stub_next(t.client);
        if (call)
            stub_answer(call, 200, lease_json("1", "you"));
    }
    assert_string_equal(t.trace, "released ");
}

static void it_may_be_freed_in_its_callbacks(void **state)
{
    (void)state;
    t.free_in_callback = true;
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_CREATE), 201, lease_json("1", "me"));
    assert_string_equal(t.trace, "elected ");
    assert_null(t.leader);
}

static void it_may_be_freed_while_a_request_is_on_its_way(void **state)
{
    (void)state;
    expect(VERB_GET);
    leader_free(t.leader);
    t.leader = NULL;
    assert_true(stub_quiet(t.client)); // the canceled request has ended
    assert_string_equal(t.trace, "");
}

static bool is_taken_down(void)
{
    if (!becomes_leader())
        return false;
    stub_client_refuse(t.client);
    while (leads())
        loop_run_once(t.loop, 100);
    return str_eq(t.trace, "lost ");
}

static void a_client_that_is_taken_down_is_fine(void **state)
{
    (void)state;
    within_a_short_deadline(is_taken_down);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define LEADER_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        LEADER_TEST(it_is_elected_and_renews),
        LEADER_TEST(it_follows_and_says_whom),
        LEADER_TEST(an_older_record_means_a_restored_backup),
        LEADER_TEST(errors_are_told_but_races_are_not),
        LEADER_TEST(it_has_lost_when_renewals_fail_for_too_long),
        LEADER_TEST(it_has_lost_when_a_renewal_hangs),
        LEADER_TEST(the_lease_is_released),
        LEADER_TEST(a_renewal_on_its_way_is_waited_for_before_the_lease_is_released),
        LEADER_TEST(a_follower_has_nothing_to_release),
        LEADER_TEST(it_may_be_freed_in_its_callbacks),
        LEADER_TEST(it_may_be_freed_while_a_request_is_on_its_way),
        LEADER_TEST(a_client_that_is_taken_down_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
