// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/keyring.h"

#include "common/base/mem.h"
#include "tests/unit/operator/identity/issuer.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define NEVER INT64_C(1000000000)
#define FOREVER_S INT64_C(4000000000)

static struct issuer_key old_key, new_key;

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct keyring *keyring;
    struct arena a;
    struct err err, told;
    struct pod_claims claims;
    int errors;
} t;

static void on_error(void *ctx, const struct err *err)
{
    (void)ctx;
    t.errors++;
    t.told = *err;
}

static void start(int64_t gap_ms, int64_t refresh_ms)
{
    keyring_free(t.keyring);
    t.keyring = keyring_new(t.loop, t.client,
                            &(struct keyring_options){.audience = "cadre",
                                                      .gap_ms = gap_ms,
                                                      .refresh_ms = refresh_ms,
                                                      .retry_ms = 1,
                                                      .retry_max_ms = 2,
                                                      .on_error = on_error});
}

static int make_keys(void **state)
{
    (void)state;
    old_key = issuer_key_new("old", "ES256");
    new_key = issuer_key_new("new", "ES256");
    return 0;
}

static int free_keys(void **state)
{
    (void)state;
    EVP_PKEY_free(old_key.key);
    EVP_PKEY_free(new_key.key);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    start(NEVER, NEVER);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    keyring_free(t.keyring);
    stub_client_free(t.client);
    loop_free(t.loop);
    arena_done(&t.a);
    return 0;
}

static struct stub_call *asked(void)
{
    struct stub_call *call = stub_next(t.client);
    assert_non_null(call);
    assert_string_equal(call->path, "/openid/v1/jwks");
    return call;
}

static void answer_with(const struct issuer_key *key)
{
    stub_answer(asked(), 200, issuer_jwks(key, 1, &t.a));
}

static int pod_of(const struct issuer_key *key)
{
    t.err = ERR_INIT;
    return keyring_pod(t.keyring, issuer_token(key, "[\"cadre\"]", FOREVER_S, &t.a), &t.a, &t.claims, &t.err);
}

static void a_pod_is_known_without_asking_for_each(void **state)
{
    (void)state;
    answer_with(&old_key);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pod_of(&old_key), 0);
    assert_string_equal(t.claims.pod, "llama-0-1");
    assert_string_equal(t.claims.pod_uid, "pod-uid");
    assert_true(stub_quiet(t.client));
}

static void before_there_are_keys_nobody_is_refused(void **state)
{
    (void)state;
    assert_int_equal(pod_of(&old_key), ERR_UNAVAILABLE);
    assert_string_equal(t.err.msg, "the keys that sign this cluster's tokens have not been read yet: try again");
    stub_fail(asked(), ERR_IO, "connection refused");
    assert_int_equal(pod_of(&old_key), ERR_UNAVAILABLE);
    assert_non_null(strstr(t.err.msg, "connection refused"));
    answer_with(&old_key);
    assert_int_equal(pod_of(&old_key), 0);
}

static void what_cannot_be_read_is_told_and_tried_again(void **state)
{
    (void)state;
    stub_answer(asked(), 403, "{\"message\":\"forbidden\"}");
    assert_int_equal(t.told.code, ERR_FORBIDDEN);
    assert_non_null(strstr(t.told.msg, "system:service-account-issuer-discovery"));
    stub_answer(asked(), 200, "{\"keys\":[]}");
    assert_int_equal(t.told.code, ERR_INVALID);
    assert_non_null(strstr(t.told.msg, "GET /openid/v1/jwks: the JWKS has no key of use"));
    answer_with(&old_key);
    assert_int_equal(t.errors, 2);
    assert_true(stub_quiet(t.client));
}

static void a_new_key_is_asked_for(void **state)
{
    (void)state;
    start(1, NEVER);
    answer_with(&old_key);
    int64_t start_ms = loop_now_ms(t.loop);
    while (loop_now_ms(t.loop) < start_ms + 2)
        loop_run_once(t.loop, 1);
    assert_int_equal(pod_of(&new_key), ERR_UNAVAILABLE);
    assert_non_null(strstr(t.err.msg, "the operator is asking the API server for new ones: try again"));
    assert_int_equal(pod_of(&new_key), ERR_UNAVAILABLE);
    assert_int_equal(stub_waiting(t.client), 1);
    assert_int_equal(pod_of(&old_key), 0); // nothing else waits
    answer_with(&new_key);
    assert_int_equal(pod_of(&new_key), 0);
}

static void a_key_that_the_cluster_does_not_have_is_refused(void **state)
{
    (void)state;
    answer_with(&old_key);
    // The keyring has just asked. A stranger does not make it ask again.
    assert_int_equal(pod_of(&new_key), ERR_UNAUTHORIZED);
    assert_string_equal(t.err.msg,
                        "the token is refused: it is signed by a key \"new\" that this cluster does not have");
    assert_true(stub_quiet(t.client));
}

static void keys_are_read_again_from_time_to_time(void **state)
{
    (void)state;
    start(NEVER, 2);
    answer_with(&old_key);
    answer_with(&new_key);
    assert_int_equal(pod_of(&new_key), 0);
    // A key that is gone from the set no longer counts.
    assert_int_not_equal(pod_of(&old_key), 0);
}

static void a_failure_leaves_the_keys_in_use(void **state)
{
    (void)state;
    start(NEVER, 2);
    answer_with(&old_key);
    stub_fail(asked(), ERR_IO, "connection refused");
    assert_int_equal(pod_of(&old_key), 0);
    // The API server may know an unknown key, but it cannot be asked.
    assert_int_equal(pod_of(&new_key), ERR_UNAVAILABLE);
}

static void it_can_go_while_it_asks(void **state)
{
    (void)state;
    asked();
    keyring_free(TAKE_PTR(t.keyring));
    assert_true(stub_quiet(t.client));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_pod_is_known_without_asking_for_each),
        TEST(before_there_are_keys_nobody_is_refused),
        TEST(what_cannot_be_read_is_told_and_tried_again),
        TEST(a_new_key_is_asked_for),
        TEST(a_key_that_the_cluster_does_not_have_is_refused),
        TEST(keys_are_read_again_from_time_to_time),
        TEST(a_failure_leaves_the_keys_in_use),
        TEST(it_can_go_while_it_asks),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
