// SPDX-License-Identifier: Apache-2.0
// The reflector over real sockets, against an API server with errors. test_reflector.c tests what it decides.
#include "operator/runtime/reflector.h"

#include "tests/unit/support/kube_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define LIST(version, items) \
    "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define NODE(name, version) "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define GONE "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"

static struct kube_fixture *f;
static struct store *store;
static struct reflector *reflector;
static int errors, bad;

static void on_error(void *ctx, enum kind kind, const struct err *err, int64_t retry_ms)
{
    (void)ctx;
    (void)kind;
    (void)err;
    (void)retry_ms;
    errors++;
}

static void on_bad_object(void *ctx, enum kind kind, const struct err *err)
{
    (void)ctx;
    (void)kind;
    (void)err;
    bad++;
}

static int setup(void **state)
{
    (void)state;
    f = fixture_new(false);
    store = store_new(KIND_NODE);
    errors = bad = 0;
    return 0;
}

static void start(void)
{
    struct reflector_options o = {.seed = 1, .on_error = on_error, .on_bad_object = on_bad_object};
    reflector = reflector_start(f->loop, fixture_client(f), store, &o);
}

static int teardown(void **state)
{
    (void)state;
    reflector_stop(reflector);
    fixture_free(f);
    store_free(store);
    return 0;
}

static void rule(struct fakeapi_rule r)
{
    fakeapi_rule(f->api, &r);
}

static bool wait_for(const char *node)
{
    for (int i = 0; i < 20000 && !store_get(store, "", node); i++)
        fixture_turn(f, 1);
    return store_get(store, "", node) != NULL;
}

static bool wait_gone(const char *node)
{
    for (int i = 0; i < 20000 && store_get(store, "", node); i++)
        fixture_turn(f, 1);
    return store_get(store, "", node) == NULL;
}

static void too_old_twice_a_connection_lost_mid_line_and_missed_deletions(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.target = "watch=", .times = 1, .status = 410, .body = GONE});
    rule((struct fakeapi_rule){.target = "watch=", .times = 1, .body = EVENT("ERROR", GONE), .ending = FAKEAPI_OPEN});
    rule((struct fakeapi_rule){.target = "watch=",
                               .times = 1,
                               .body = EVENT("ADDED", NODE("n3", "31")) "{\"type\":\"ADDED\",\"obj",
                               .ending = FAKEAPI_OPEN});
    rule((struct fakeapi_rule){.target = "watch=",
                               .body = EVENT("MODIFIED", NODE("n3", "32")) EVENT("ADDED", NODE("n4", "33")),
                               .split = 7,
                               .ending = FAKEAPI_OPEN});
    rule((struct fakeapi_rule){.times = 1, .body = LIST("10", NODE("n1", "1") "," NODE("n2", "2"))});
    rule((struct fakeapi_rule){.times = 1, .body = LIST("20", NODE("n2", "2"))});
    rule((struct fakeapi_rule){.body = LIST("30", NODE("n2", "2")), .split = 3});
    start();
    assert_true(wait_for("n3")); // after both 410s
    assert_null(store_get(store, "", "n1"));
    assert_int_equal(fakeapi_end(f->api, "watch=", FAKEAPI_DROP), 1);
    assert_true(wait_for("n4"));
    assert_string_equal(store_get(store, "", "n3")->meta.resource_version, "32");
    const struct fakeapi_request *last = fakeapi_at(f->api, fakeapi_count(f->api) - 1);
    assert_non_null(strstr(last->target, "resourceVersion=31")); // it needed no list
    assert_non_null(strstr(last->target, "allowWatchBookmarks=true"));
    assert_int_equal(errors, 3);
    assert_int_equal(bad, 0);
}

static void a_server_that_goes_away_and_comes_back(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.target = "watch=", .ending = FAKEAPI_OPEN});
    rule((struct fakeapi_rule){.body = LIST("10", NODE("n1", "1"))});
    start();
    assert_true(wait_for("n1"));
    assert_true(fixture_wait_streams(f, 1));
    fakeapi_down(f->api, true);
    fakeapi_end(f->api, "watch=", FAKEAPI_RESET);
    for (int i = 0; i < 20000 && errors < 2; i++)
        fixture_turn(f, 1);
    assert_true(errors >= 2);
    assert_non_null(store_get(store, "", "n1")); // known objects stay
    fakeapi_down(f->api, false);
    assert_true(fixture_wait_streams(f, 1));
    fakeapi_push(f->api, "watch=", EVENT("DELETED", NODE("n1", "11")));
    assert_true(wait_gone("n1"));
}

static void a_list_cut_in_the_middle_is_not_taken_for_the_whole(void **state)
{
    (void)state;
    rule((struct fakeapi_rule){.target = "watch=", .ending = FAKEAPI_OPEN});
    rule((struct fakeapi_rule){
        .times = 1,
        .body =
            "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" NODE("n1", "1") ",{\"met",
        .split = 10,
        .ending = FAKEAPI_DROP});
    rule((struct fakeapi_rule){.body = LIST("12", NODE("n2", "2") ",{}")});
    start();
    assert_true(wait_for("n1"));
    assert_false(store_is_complete(store));
    assert_true(wait_for("n2"));
    assert_true(wait_gone("n1"));
    assert_true(store_is_complete(store));
    assert_int_equal(errors, 1);
    assert_int_equal(bad, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define REFLECTOR_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        REFLECTOR_TEST(too_old_twice_a_connection_lost_mid_line_and_missed_deletions),
        REFLECTOR_TEST(a_server_that_goes_away_and_comes_back),
        REFLECTOR_TEST(a_list_cut_in_the_middle_is_not_taken_for_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
