// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/vault.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "operator/identity/ticket.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define EMPTY "{\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"1\"}}"

#define GONE_NOTICE \
    "somebody deleted the Secret cadre-system/cadre-keys: it is back, with the keys that the operator remembers"
#define FOR_EVER_MS 3600000

struct replica {
    struct vault *vault;
    int times;
    uint8_t install[INSTALL_KEY_SIZE];
    char ca[2048], cert[2048], id[64];
    int errors;
    struct err err;
    char filled[256];
};

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct replica one, two;
    int trusting; // answers of "there are pods that trust other keys"
    struct arena a;
} t;

static void on_keys(void *ctx, const struct vault_keys *k)
{
    struct replica *r = ctx;
    r->times++;
    memcpy(r->install, k->install, INSTALL_KEY_SIZE);
    snprintf(r->ca, sizeof r->ca, "%s", k->ca_pem);
    snprintf(r->cert, sizeof r->cert, "%s", k->cert_pem);
    snprintf(r->id, sizeof r->id, "%s", k->id);
    assert_ptr_equal(vault_get_keys(r->vault), k);
}

static void on_filled(void *ctx, const char *what)
{
    struct replica *r = ctx;
    snprintf(r->filled, sizeof r->filled, "%s", what);
}

static void on_error(void *ctx, const struct err *err)
{
    struct replica *r = ctx;
    r->errors++;
    r->err = *err;
}

static bool trusted(void *ctx)
{
    (void)ctx;
    return t.trusting > 0 && t.trusting-- > 0;
}

static void start_with(struct replica *r, int64_t reread_ms)
{
    static const char *const dns[] = {"localhost"};
    r->vault = vault_new(t.loop, t.client,
                         &(struct vault_options){.ns = "cadre-system",
                                                 .name = "cadre-keys",
                                                 .names = {dns, 1},
                                                 .reread_ms = reread_ms,
                                                 .retry_ms = 2,
                                                 .stop_ms = 20,
                                                 .trusted = trusted,
                                                 .on_keys = on_keys,
                                                 .on_filled = on_filled,
                                                 .on_error = on_error,
                                                 .ctx = r});
    assert_null(vault_get_keys(r->vault));
}

static void start(struct replica *r)
{
    start_with(r, 4);
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

// Returns the Secret after the patch of that request.
static const char *written_by(const struct stub_call *call)
{
    struct json *root;
    struct err err = ERR_INIT;
    char *body = arena_strdup(&t.a, call->request.body);
    assert_int_equal(json_parse(body, strlen(body), NULL, &t.a, &root, &err), 0);
    assert_true(json_str_is(json_get(json_get(root, "metadata"), "resourceVersion"), "1"));
    const struct json *data = json_get(root, "data");
    return arena_printf(&t.a, "{\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"1\"},\"data\":%.*s}",
                        (int)data->len, data->text);
}

static const char *fill(void)
{
    stub_answer(expect(VERB_GET), 200, EMPTY);
    struct stub_call *patch = expect(VERB_PATCH_MERGE);
    const char *secret = written_by(patch);
    int times = t.one.times;
    stub_answer(patch, 200, secret);
    assert_int_equal(t.one.times, times + 1); // not before the Secret is written
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

// Both make their own keys. Only one set gets into the Secret.
static const char *keys_of_another_install(void)
{
    start(&t.two);
    stub_fail(expect(VERB_GET), ERR_IO, "not for the first");
    for (;;) {
        stub_answer(expect(VERB_GET), 200, EMPTY);
        struct stub_call *patch = expect(VERB_PATCH_MERGE);
        const char *secret = written_by(patch);
        stub_answer(patch, 200, secret);
        if (t.two.times) {
            vault_free(TAKE_PTR(t.two.vault));
            return secret;
        }
    }
}

static void a_replica_follows_what_others_write(void **state)
{
    (void)state;
    const char *other = keys_of_another_install(), *first = fill();
    struct replica before = t.one;
    stub_answer(expect(VERB_GET), 200, other);
    assert_int_equal(t.one.times, before.times + 1);
    assert_memory_equal(t.one.install, t.two.install, INSTALL_KEY_SIZE);
    assert_string_equal(t.one.id, t.two.id);
    const struct vault_keys *k = vault_get_keys(t.one.vault);
    assert_int_equal(k->n_former, 1);
    assert_memory_equal(k->former[0], before.install, INSTALL_KEY_SIZE);
    stub_answer(expect(VERB_GET), 200, first); // somebody has restored the old keys
    assert_int_equal(t.one.times, before.times + 2);
    assert_string_equal(t.one.id, before.id);
    assert_int_equal(k->n_former, 1);
    assert_memory_equal(k->former[0], t.two.install, INSTALL_KEY_SIZE);
}

static void former_install_keys_are_few(void **state)
{
    (void)state;
    fill();
    for (int i = 0; i < 10; i++) {
        stub_answer(expect(VERB_GET), 200,
                    arena_printf(&t.a,
                                 "{\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"1\"},\"data\":{"
                                 "\"install.key\":\"%cAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"}}",
                                 'A' + i));
        stub_answer(expect(VERB_PATCH_MERGE), 200, "{}"); // the other entries are restored
    }
    assert_int_equal(t.one.times, 11);
    assert_int_equal(vault_get_keys(t.one.vault)->n_former, 4);
    assert_int_equal(vault_get_keys(t.one.vault)->former[0][0], 8 << 2);
}

// The Secret is gone. It is created again without data, then filled with its new resourceVersion.
static void put_back(const char *secret)
{
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_APPLY), 201, EMPTY);
    struct stub_call *patch = expect(VERB_PATCH_MERGE);
    assert_string_equal(written_by(patch), secret);
    stub_answer(patch, 200, secret);
}

static void a_missing_secret_is_made_again_with_the_keys_in_use(void **state)
{
    (void)state;
    const char *secret = fill();
    t.trusting = FOR_EVER_MS; // so the vault waits
    for (int i = 0; i < 3; i++) {
        t.one.filled[0] = '\0';
        put_back(secret);
        assert_string_equal(t.one.filled, GONE_NOTICE);
    }
    assert_int_equal(t.one.times, 1);
    assert_int_equal(t.one.errors, 0);
}

static void it_is_made_again_as_its_installer_knew_it(void **state)
{
    (void)state;
    const char *data = strstr(fill(), "\"data\"");
    stub_answer(expect(VERB_GET), 200,
                arena_printf(&t.a,
                             "{\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"1\",\"annotations\":{"
                             "\"meta.helm.sh/release-name\":\"cadre\"}},%s",
                             data));
    stub_answer(expect(VERB_GET), 404, "{}");
    assert_string_equal(
        expect(VERB_APPLY)->request.body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"cadre-keys\",\"annotations\":{"
        "\"meta.helm.sh/release-name\":\"cadre\"}},\"type\":\"Opaque\"}");
}

static void entries_that_are_gone_are_put_back(void **state)
{
    (void)state;
    const char *secret = fill(), *half = strstr(secret, "\"ca.crt\"");
    stub_answer(
        expect(VERB_GET), 200,
        arena_printf(&t.a, "{\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"1\"},\"data\":{%s", half));
    struct stub_call *patch = expect(VERB_PATCH_MERGE);
    assert_non_null(strstr(patch->request.body, "install.key"));
    assert_null(strstr(patch->request.body, "ca.crt"));
    stub_answer(patch, 200, secret);
    assert_string_equal(t.one.filled,
                        "the Secret cadre-system/cadre-keys lacked install.key: the operator put back what "
                        "it remembers");
    stub_answer(expect(VERB_GET), 200, EMPTY); // all keys are gone
    stub_answer(expect(VERB_PATCH_MERGE), 200, secret);
    assert_int_equal(t.one.times, 1);
}

static void of_two_that_make_the_secret_one_writes(void **state)
{
    (void)state;
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_APPLY), 201, EMPTY);
    struct stub_call *patch = expect(VERB_PATCH_MERGE);
    stub_answer(patch, 409, "{\"reason\":\"Conflict\"}");
    assert_null(vault_get_keys(t.one.vault));
    const char *other = keys_of_another_install();
    while (!t.one.times)
        stub_answer(expect(VERB_GET), 200, other);
    assert_string_equal(t.one.id, t.two.id);
}

static void new_keys_wait_for_one_that_remembers_those_that_pods_trust(void **state)
{
    (void)state;
    const char *secret = fill();
    struct replica before = t.one;
    vault_free(TAKE_PTR(t.one.vault));
    t.trusting = FOR_EVER_MS;
    start_with(&t.one, FOR_EVER_MS);
    for (int i = 0; i < 10; i++)
        stub_answer(expect(VERB_GET), i % 2 ? 404 : 200, EMPTY);
    stub_answer(expect(VERB_GET), 200, secret); // from the replica that remembers
    assert_int_equal(t.one.times, before.times + 1);
    assert_string_equal(t.one.id, before.id);
}

static void nobody_is_waited_for_in_vain(void **state)
{
    (void)state;
    t.trusting = FOR_EVER_MS;
    vault_free(TAKE_PTR(t.one.vault));
    start_with(&t.one, 300); // it waits three times as long, and reads in between, even on a busy machine
    struct stub_call *call;
    while ((call = stub_next(t.client))->request.verb == VERB_GET)
        stub_answer(call, 404, "{}");
    assert_int_equal(t.one.err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(t.one.err.msg, "has no keys, and pods may trust former keys"));
    stub_answer(expect(VERB_APPLY), 201, EMPTY);
    call = expect(VERB_PATCH_MERGE);
    stub_answer(call, 200, written_by(call));
    assert_int_equal(t.one.times, 1);
    assert_string_equal(t.one.filled, "the Secret cadre-system/cadre-keys had no keys: the operator made new keys");
}

static void a_missing_right_is_named(void **state)
{
    (void)state;
    stub_answer(expect(VERB_GET), 403, "{\"message\":\"secrets is forbidden\"}");
    assert_int_equal(t.one.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(t.one.err.msg,
                           "may not read the Secret cadre-system/cadre-keys: its Role there needs get, list, "
                           "watch, patch and create on secrets with resourceNames [cadre-keys]"));
    stub_answer(expect(VERB_GET), 200, EMPTY);
    stub_answer(expect(VERB_PATCH_MERGE), 403, "{}");
    assert_non_null(strstr(t.one.err.msg, "may not write the Secret cadre-system/cadre-keys"));
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_APPLY), 403, "{}");
    assert_non_null(strstr(t.one.err.msg, "may not create the Secret cadre-system/cadre-keys: "));
    assert_non_null(
        strstr(t.one.err.msg, "or create it yourself: kubectl create secret generic cadre-keys -n cadre-system"));
    assert_null(vault_get_keys(t.one.vault));
    fill();
    assert_int_equal(t.one.times, 1);
}

static void who_may_not_create_goes_on_and_says_so_once(void **state)
{
    (void)state;
    const char *secret = fill();
    for (int i = 0; i < 5; i++) {
        stub_answer(expect(VERB_GET), 404, "{}");
        stub_answer(expect(VERB_APPLY), 403, "{}");
    }
    assert_int_equal(t.one.errors, 1);
    assert_non_null(strstr(t.one.err.msg, "and continues with the keys that it remembers"));
    assert_non_null(vault_get_keys(t.one.vault));
    stub_answer(expect(VERB_GET), 200, EMPTY); // the administrator created it
    struct stub_call *patch = expect(VERB_PATCH_MERGE);
    assert_string_equal(written_by(patch), secret);
    stub_answer(patch, 200, secret);
    assert_int_equal(t.one.times, 1);
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_APPLY), 403, "{}");
    assert_int_equal(t.one.errors, 2); // a second report
}

static void a_change_is_read_at_once(void **state)
{
    (void)state;
    const char *other = keys_of_another_install(), *first = fill();
    vault_free(TAKE_PTR(t.one.vault));
    start_with(&t.one, FOR_EVER_MS);
    stub_answer(expect(VERB_GET), 200, first);
    assert_true(stub_quiet(t.client));
    vault_look(t.one.vault);
    struct stub_call *under_way = expect(VERB_GET);
    vault_look(t.one.vault); // the Secret changes while it is read
    stub_answer(under_way, 200, first);
    stub_answer(expect(VERB_GET), 200, other);
    assert_string_equal(t.one.id, t.two.id);
    assert_true(stub_quiet(t.client));
}

// The last read succeeded, and the next one would be in an hour.
static void a_secret_that_goes_just_before_the_end_is_put_back(void **state)
{
    (void)state;
    const char *secret = fill();
    vault_free(TAKE_PTR(t.one.vault));
    start_with(&t.one, FOR_EVER_MS);
    stub_answer(expect(VERB_GET), 200, secret);
    assert_true(stub_quiet(t.client));
    vault_stop(t.one.vault);
    assert_false(vault_idle(t.one.vault));
    stub_answer(expect(VERB_GET), 404, "{}");
    stub_answer(expect(VERB_APPLY), 201, EMPTY);
    struct stub_call *patch = expect(VERB_PATCH_MERGE);
    assert_string_equal(written_by(patch), secret);
    assert_false(vault_idle(t.one.vault));
    stub_answer(patch, 200, secret);
    assert_true(vault_idle(t.one.vault));
    assert_true(stub_quiet(t.client));
}

static void the_end_needs_one_look_where_nothing_is_gone(void **state)
{
    (void)state;
    const char *secret = fill();
    struct stub_call *under_way = expect(VERB_GET);
    vault_stop(t.one.vault);
    assert_true(under_way->canceled);
    stub_answer(expect(VERB_GET), 200, secret);
    assert_true(vault_idle(t.one.vault));
    assert_true(stub_quiet(t.client));
}

static void the_end_does_not_wait_for_ever(void **state)
{
    (void)state;
    fill();
    vault_stop(t.one.vault);
    while (!vault_idle(t.one.vault)) {
        struct stub_call *call = stub_next(t.client);
        stub_fail(call, ERR_IO, "connection refused");
    }
}

static void who_has_no_keys_ends_at_once_and_makes_none(void **state)
{
    (void)state;
    stub_answer(expect(VERB_GET), 200, EMPTY);
    expect(VERB_PATCH_MERGE);
    vault_stop(t.one.vault);
    assert_true(vault_idle(t.one.vault));
    assert_true(stub_quiet(t.client));
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
        TEST(former_install_keys_are_few),
        TEST(a_missing_secret_is_made_again_with_the_keys_in_use),
        TEST(it_is_made_again_as_its_installer_knew_it),
        TEST(entries_that_are_gone_are_put_back),
        TEST(of_two_that_make_the_secret_one_writes),
        TEST(new_keys_wait_for_one_that_remembers_those_that_pods_trust),
        TEST(nobody_is_waited_for_in_vain),
        TEST(a_missing_right_is_named),
        TEST(who_may_not_create_goes_on_and_says_so_once),
        TEST(a_change_is_read_at_once),
        TEST(a_secret_that_goes_just_before_the_end_is_put_back),
        TEST(the_end_needs_one_look_where_nothing_is_gone),
        TEST(the_end_does_not_wait_for_ever),
        TEST(who_has_no_keys_ends_at_once_and_makes_none),
        TEST(what_was_read_stays_in_use_when_reading_fails),
        TEST(it_can_go_while_it_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
