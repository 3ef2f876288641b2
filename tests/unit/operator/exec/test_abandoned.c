// SPDX-License-Identifier: Apache-2.0
// Groups that belong to a session, when nobody renews them any more.
#include "operator/exec/abandoned.h"

#include "common/base/log.h"
#include "tests/unit/support/store_gone.h"
#include "tests/unit/support/store_json.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONFLICT "{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\"}"

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct store *stores[KIND_COUNT];
    struct abandoned *abandoned;
    int version;
} t;

static void put_group(const char *renewed, const char *more)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":\"u-g\",\"resourceVersion\":\"%d\"%s,"
             "\"annotations\":{\"cadre.dev/created-by\":\"anna\"%s%s%s}},"
             "\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\",\"image\":\"i\"}]}}}}",
             ++t.version, more, renewed ? ",\"cadre.dev/session-renewed\":\"" : "", renewed ? renewed : "",
             renewed ? "\"" : "");
    store_put_json(t.stores[KIND_WORKERGROUP], json);
}

static void start(int64_t after_ms)
{
    t.version = 0;
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    stores_new(t.stores);
    t.abandoned = abandoned_new(t.loop, t.client, t.stores, after_ms);
}

static int teardown(void **state)
{
    (void)state;
    abandoned_stop(t.abandoned);
    stub_client_cancel(t.client);
    abandoned_free(t.abandoned);
    stores_free(t.stores);
    stub_client_free(t.client);
    loop_free(t.loop);
    return 0;
}

static struct stub_call *next(void) // waits as long as it takes
{
    struct stub_call *call;
    while (!(call = stub_next(t.client)))
        ;
    return call;
}

static void one_that_nobody_renews_goes(void **state)
{
    (void)state;
    start(1);
    put_group("17", "");
    abandoned_start(t.abandoned);
    struct stub_call *call = next();
    assert_int_equal(call->request.verb, VERB_DELETE);
    assert_int_equal(call->request.kind, KIND_WORKERGROUP);
    assert_string_equal(call->request.name, "g");
    assert_string_equal(call->request.uid, "u-g");
    assert_int_equal(call->request.grace_s, -1);
    assert_false(abandoned_idle(t.abandoned));
    stub_answer(call, 200, "{}");
    assert_true(abandoned_idle(t.abandoned));
}

static void put_placementgroup(void)
{
    static const char json[] = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"u-p\",\"resourceVersion\":"
                               "\"1\",\"annotations\":{\"cadre.dev/session-renewed\":\"17\"}},\"spec\":{\"bundles\":["
                               "{\"count\":2,\"resources\":{}}]}}";
    store_put_json(t.stores[KIND_PLACEMENTGROUP], json);
}

static void so_does_a_placementgroup(void **state)
{
    (void)state;
    start(1);
    put_placementgroup();
    abandoned_start(t.abandoned);
    struct stub_call *call = next();
    assert_int_equal(call->request.kind, KIND_PLACEMENTGROUP);
    assert_string_equal(call->request.uid, "u-p");
    stub_answer(call, 200, "{}");
}

static void what_failed_is_tried_again(void **state)
{
    (void)state;
    start(1);
    abandoned_start(t.abandoned);
    put_group("17", "");
    stub_fail(next(), ERR_UNAVAILABLE, "not now");
    stub_answer(next(), 200, "{}");
}

// Writes of the status come without a renewal. The API server refuses to delete an older version.
static void only_the_newest_version_that_was_seen_is_deleted(void **state)
{
    (void)state;
    start(1);
    put_group("17", "");
    put_group("17", "");
    abandoned_start(t.abandoned);
    struct stub_call *call = next();
    assert_string_equal(call->request.resource_version, "2");
    stub_answer(call, 409, CONFLICT); // it was renewed meanwhile
    put_group("18", "");
    call = next(); // nobody has renewed it again
    assert_string_equal(call->request.resource_version, "3");
    stub_answer(call, 200, "{}");
}

// Other failures wait for another `after_ms`.
static void a_conflict_without_a_renewal_is_tried_again_at_the_next_look(void **state)
{
    (void)state;
    start(1);
    put_group("17", "");
    put_placementgroup();
    abandoned_start(t.abandoned);
    stub_fail(next(), ERR_UNAVAILABLE, "not now");
    stub_answer(next(), 409, CONFLICT); // of the PlacementGroup: somebody wrote its status
    struct stub_call *call = next();
    assert_int_equal(call->request.kind, KIND_PLACEMENTGROUP); // the first of both
    stub_answer(call, 200, "{}");
    stub_answer(next(), 200, "{}");
}

static void logged(struct stub_call *call, char *ret, size_t size) // when the API server reports a conflict
{
    FILE *capture = tmpfile();
    int real_stderr = dup(STDERR_FILENO);
    assert_non_null(capture);
    assert_true(dup2(fileno(capture), STDERR_FILENO) >= 0);
    log_setup(LOG_DEBUG, LOG_JSON);
    stub_answer(call, 409, CONFLICT);
    log_setup(LOG_INFO, LOG_JSON);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    rewind(capture);
    size_t n = fread(ret, 1, size - 1, capture);
    ret[n] = '\0';
    fclose(capture);
}

static void one_that_is_gone_meanwhile_is_not_tried_again(void **state)
{
    char log[1024];
    (void)state;
    start(1);
    abandoned_start(t.abandoned);
    put_group("17", "");
    logged(next(), log, sizeof log);
    assert_non_null(strstr(log, "the operator tries again soon"));
    struct stub_call *call = next();
    put_group("17", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    logged(call, log, sizeof log);
    assert_string_equal(log, "");
    assert_true(stub_quiet(t.client));
}

static void others_stay(void **state)
{
    (void)state;
    start(1);
    abandoned_start(t.abandoned);
    put_group(NULL, "");
    assert_true(stub_quiet(t.client));
    put_group("17", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    assert_true(stub_quiet(t.client));
}

static void a_renewal_counts_from_when_it_is_seen(void **state)
{
    (void)state;
    start(3600 * 1000);
    abandoned_start(t.abandoned);
    put_group("17", "");
    put_group("1", ""); // the time in the annotation does not matter
    assert_true(stub_quiet(t.client));
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    assert_true(stub_quiet(t.client));
}

static void only_the_leader_deletes(void **state)
{
    (void)state;
    start(1);
    put_group("17", "");
    assert_true(stub_quiet(t.client));
    abandoned_start(t.abandoned);
    abandoned_stop(t.abandoned);
    assert_true(stub_quiet(t.client));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_that_nobody_renews_goes, teardown),
        cmocka_unit_test_teardown(so_does_a_placementgroup, teardown),
        cmocka_unit_test_teardown(what_failed_is_tried_again, teardown),
        cmocka_unit_test_teardown(only_the_newest_version_that_was_seen_is_deleted, teardown),
        cmocka_unit_test_teardown(a_conflict_without_a_renewal_is_tried_again_at_the_next_look, teardown),
        cmocka_unit_test_teardown(one_that_is_gone_meanwhile_is_not_tried_again, teardown),
        cmocka_unit_test_teardown(others_stay, teardown),
        cmocka_unit_test_teardown(a_renewal_counts_from_when_it_is_seen, teardown),
        cmocka_unit_test_teardown(only_the_leader_deletes, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
