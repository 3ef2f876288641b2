// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/vault.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "operator/identity/ticket.h"
#include "tests/unit/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define EMPTY "{\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"1\"}}"

struct replica {
    struct vault *vault;
    int times;
    uint8_t install[INSTALL_KEY_SIZE];
    char ca[2048], cert[2048];
    int errors;
    struct err err;
};

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct replica one, two;
    struct arena a;
} t;

static void on_keys(void *ctx, const struct vault_keys *k)
{
    struct replica *r = ctx;
    r->times++;
    memcpy(r->install, k->install, INSTALL_KEY_SIZE);
    snprintf(r->ca, sizeof r->ca, "%s", k->ca_pem);
    snprintf(r->cert, sizeof r->cert, "%s", k->cert_pem);
    assert_ptr_equal(vault_get_keys(r->vault), k);
}

static void on_error(void *ctx, const struct err *err)
{
    struct replica *r = ctx;
    r->errors++;
    r->err = *err;
}

static void start(struct replica *r)
{
    static const char *const dns[] = {"localhost"};
    r->vault = vault_new(t.loop, t.client,
                         &(struct vault_options){.ns = "cadre-system",
                                                 .name = "cadre-keys",
                                                 .names = {dns, 1},
                                                 .reread_ms = 4,
                                                 .retry_ms = 2,
                                                 .on_keys = on_keys,
                                                 .on_error = on_error,
                                                 .ctx = r});
    assert_null(vault_get_keys(r->vault));
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    start(&t.one);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    vault_free(t.one.vault);
    vault_free(t.two.vault);
    stub_client_free(t.client);
    loop_free(t.loop);
    arena_done(&t.a);
    return 0;
}

static struct stub_call *expect(enum verb verb)
{
    struct stub_call *call = stub_next(t.client);
    assert_non_null(call);
    assert_int_equal(call->request.verb, verb);
    assert_int_equal(call->request.kind, KIND_SECRET);
    assert_string_equal(call->request.ns, "cadre-system");
    assert_string_equal(call->request.name, "cadre-keys");
    return call;
}

// The Secret once the patch of that call is in it.
static const char *written_by(const struct stub_call *call)
{
    struct json *root;
    struct err err = ERR_INIT;
    char *body = arena_strdup(&t.a, call->request.body);
    assert_int_equal(json_parse(body, strlen(body), NULL, &t.a, &root, &err), 0);
    assert_true(json_str_is(json_get(json_get(root, "metadata"), "resourceVersion"), "1"));
    const struct json *data = json_get(root, "data");
    return arena_printf(&t.a, "{\"metadata\":{\"resourceVersion\":\"2\"},\"data\":%.*s}", (int)data->len, data->text);
}

static const char *fill(void)
{
    stub_answer(expect(VERB_GET), 200, EMPTY);
    struct stub_call *patch = expect(VERB_PATCH_MERGE);
    const char *secret = written_by(patch);
    int times = t.one.times;
    stub_answer(patch, 200, secret);
    assert_int_equal(t.one.times, times + 1); // not before it is written
    return secret;
}

static void an_empty_secret_is_filled_once(void **state)
{
    (void)state;
    const char *secret = fill();
    assert_int_equal(t.one.times, 1);
    for (int i = 0; i < 3; i++)
        stub_answer(expect(VERB_GET), 200, secret);
    assert_int_equal(t.one.times, 1);
    assert_int_equal(t.one.errors, 0);
}

static void two_replicas_that_start_at_once_end_with_the_same_keys(void **state)
{
    (void)state;
    start(&t.two);
    while (stub_waiting(t.client) < 2)
        loop_run_once(t.loop, 10);
    // Both have read the empty Secret before either has written.
    stub_answer(expect(VERB_GET), 200, EMPTY);
    stub_answer(expect(VERB_GET), 200, EMPTY);
    struct stub_call *first = expect(VERB_PATCH_MERGE);
    struct stub_call *second = CONTAINER_OF(first->link.next, struct stub_call, link);
    const char *secret = written_by(first);
    assert_int_equal(second->request.verb, VERB_PATCH_MERGE);
    assert_string_not_equal(second->request.body, first->request.body);
    stub_answer(first, 200, secret);
    stub_answer(second, 409, "{\"reason\":\"Conflict\"}");
    while (!t.one.times || !t.two.times)
        stub_answer(expect(VERB_GET), 200, secret);
    assert_memory_equal(t.one.install, t.two.install, INSTALL_KEY_SIZE);
    assert_string_equal(t.one.ca, t.two.ca);
    assert_string_equal(t.one.cert, t.two.cert);
    assert_int_equal(t.one.errors + t.two.errors, 0);
}

static void a_replica_follows_what_others_write(void **state)
{
    (void)state;
    const char *first = fill();
    uint8_t before[INSTALL_KEY_SIZE];
    memcpy(before, t.one.install, sizeof before);
    fill(); // emptied by somebody who wants new keys
    assert_int_equal(t.one.times, 2);
    assert_memory_not_equal(t.one.install, before, sizeof before);
    stub_answer(expect(VERB_GET), 200, first); // and somebody has put the old ones back
    assert_int_equal(t.one.times, 3);
    assert_memory_equal(t.one.install, before, sizeof before);
}

static void a_missing_secret_is_named_and_waited_for(void **state)
{
    (void)state;
    stub_answer(expect(VERB_GET), 404, "{}");
    assert_int_equal(t.one.errors, 1);
    assert_int_equal(t.one.err.code, ERR_NOT_FOUND);
    assert_string_equal(t.one.err.msg,
                        "the Secret cadre-system/cadre-keys does not exist: the chart creates it empty and the "
                        "operator fills it; without the chart: kubectl create secret generic cadre-keys -n "
                        "cadre-system");
    stub_answer(expect(VERB_GET), 404, "{}");
    assert_int_equal(t.one.errors, 2);
    fill();
    assert_int_equal(t.one.times, 1);
}

static void a_missing_right_is_named(void **state)
{
    (void)state;
    stub_answer(expect(VERB_GET), 403, "{\"message\":\"secrets is forbidden\"}");
    assert_int_equal(t.one.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(t.one.err.msg, "may not read the Secret cadre-system/cadre-keys: its Role there needs get "
                                          "and patch on secrets with resourceNames [cadre-keys]"));
    stub_answer(expect(VERB_GET), 200, EMPTY);
    stub_answer(expect(VERB_PATCH_MERGE), 403, "{}");
    assert_non_null(strstr(t.one.err.msg, "may not write the Secret cadre-system/cadre-keys"));
    assert_null(vault_get_keys(t.one.vault));
    fill();
    assert_int_equal(t.one.times, 1);
}

static void what_was_read_stays_in_use_when_reading_fails(void **state)
{
    (void)state;
    fill();
    const struct vault_keys *k = vault_get_keys(t.one.vault);
    stub_fail(expect(VERB_GET), ERR_IO, "connection refused");
    stub_answer(expect(VERB_GET), 200, "{\"metadata\":{\"resourceVersion\":\"3\"},\"data\":{\"ca.crt\":\"eA==\"}}");
    assert_int_equal(t.one.errors, 2);
    assert_non_null(strstr(t.one.err.msg, "the Secret cadre-system/cadre-keys: tls.crt is missing"));
    assert_ptr_equal(vault_get_keys(t.one.vault), k);
    assert_string_equal(k->cert_pem, t.one.cert);
    assert_int_equal(t.one.times, 1);
}

static void it_can_go_while_it_asks(void **state)
{
    (void)state;
    stub_answer(expect(VERB_GET), 200, EMPTY);
    expect(VERB_PATCH_MERGE);
    vault_free(TAKE_PTR(t.one.vault));
    assert_true(stub_quiet(t.client));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_secret_is_filled_once),
        TEST(two_replicas_that_start_at_once_end_with_the_same_keys),
        TEST(a_replica_follows_what_others_write),
        TEST(a_missing_secret_is_named_and_waited_for),
        TEST(a_missing_right_is_named),
        TEST(what_was_read_stays_in_use_when_reading_fails),
        TEST(it_can_go_while_it_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
