// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/object_watch.h"

#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define SECRET(version)                                                                                            \
    "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"keys\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":" \
    "\"" version "\"}}"

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct object_watch *watch;
    int changes, errors;
} t;

static void on_change(void *ctx)
{
    (void)ctx;
    t.changes++;
}

static void on_error(void *ctx, const struct err *err)
{
    (void)ctx;
    assert_int_equal(err->code, ERR_FORBIDDEN);
    t.errors++;
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    t.watch = object_watch_new(
        t.loop, t.client,
        &(struct object_watch_options){
            .kind = KIND_SECRET, .ns = "ns", .name = "keys", .seed = 1, .on_change = on_change, .on_error = on_error});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    object_watch_free(t.watch);
    stub_client_free(t.client);
    loop_free(t.loop);
    return 0;
}

static struct stub_call *expect(enum verb verb)
{
    struct stub_call *call = stub_next(t.client);
    assert_int_equal(call->request.verb, verb);
    assert_int_equal(call->request.kind, KIND_SECRET);
    assert_string_equal(call->request.ns, "ns");
    assert_string_equal(call->request.field_selector, "metadata.name=keys");
    return call;
}

static void list(const char *text)
{
    struct stub_call *call = expect(VERB_LIST);
    stub_data(call, text, strlen(text));
    stub_end(call);
}

static void event(struct stub_call *watch, const char *text)
{
    stub_data(watch, text, strlen(text));
}

static void it_tells_of_each_change(void **state)
{
    (void)state;
    list("{\"kind\":\"SecretList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" SECRET("5") "]}");
    assert_int_equal(t.changes, 1);
    struct stub_call *watch = expect(VERB_WATCH);
    assert_string_equal(watch->request.resource_version, "7");
    event(watch, "{\"type\":\"MODIFIED\",\"object\":" SECRET("8") "}\n");
    assert_int_equal(t.changes, 2);
    event(watch, "{\"type\":\"DELETED\",\"object\":" SECRET("9") "}\n");
    assert_int_equal(t.changes, 3);
    event(watch, "{\"type\":\"ADDED\",\"object\":" SECRET("10") "}\n");
    assert_int_equal(t.changes, 4);
    assert_int_equal(t.errors, 0);
}

static void a_missing_right_is_told_once_and_tried_again(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        stub_fail(expect(VERB_LIST), ERR_FORBIDDEN, "no");
        object_watch_retry_now(t.watch);
    }
    assert_int_equal(t.errors, 1);
    list("{\"kind\":\"SecretList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}");
    assert_int_equal(t.changes, 0);
    expect(VERB_WATCH);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_tells_of_each_change),
        TEST(a_missing_right_is_told_once_and_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
