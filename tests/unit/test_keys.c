// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/keys.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "operator/identity/base64.h"
#include "tests/fakeapi/certs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define NOW_MS INT64_C(1800000000000)
#define EMPTY "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"7\"}}"

static const char *const dns[] = {"cadre-operator.cadre-system.svc", "localhost"};
static const struct certificate_names names = {dns, ARRAY_LEN(dns)};

static struct {
    struct arena a;
    struct err err;
    const char *patch;
    struct certs certs;
} t;

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    certs_make(&t.certs);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    certs_done(&t.certs);
    arena_done(&t.a);
    return 0;
}

static const char *base64(const char *text)
{
    return base64_encode(BASE64_STANDARD, text, strlen(text), &t.a);
}

static struct keys decode(const char *secret)
{
    struct keys k;
    t.err = ERR_INIT;
    if (keys_decode(secret, strlen(secret), &t.a, &k, &t.err) < 0)
        fail_msg("%s", t.err.msg);
    return k;
}

static struct keys complete_for(const char *secret, struct certificate_names for_names, int64_t now_ms)
{
    struct keys found = decode(secret), k;
    t.patch = NULL;
    if (keys_complete(&found, for_names, now_ms, &t.a, &k, &t.patch, &t.err) < 0)
        fail_msg("%s", t.err.msg);
    return k;
}

static struct keys complete(const char *secret, int64_t now_ms)
{
    return complete_for(secret, names, now_ms);
}

static void complete_fails(const char *secret, int64_t now_ms, const char *why)
{
    struct keys found = decode(secret), k;
    assert_int_equal(keys_complete(&found, names, now_ms, &t.a, &k, &t.patch, &t.err), ERR_INVALID);
    if (!strstr(t.err.msg, why))
        fail_msg("%s", t.err.msg);
}

static struct json *patch_data(void)
{
    struct json *root;
    assert_non_null(t.patch);
    assert_int_equal(json_parse(t.patch, strlen(t.patch), NULL, &t.a, &root, &t.err), 0);
    assert_true(json_str_is(json_get(json_get(root, "metadata"), "resourceVersion"), "7"));
    return (struct json *)json_get(root, "data");
}

// The Secret after the patch, if it was without the entries of the patch before.
static const char *patched(const char *more)
{
    const struct json *data = patch_data();
    return arena_printf(&t.a, "{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{%s%.*s}", more, (int)data->len - 1,
                        data->text + 1);
}

static void an_empty_secret_is_filled(void **state)
{
    (void)state;
    struct keys k = complete(EMPTY, NOW_MS);
    assert_true(k.has_install);
    assert_int_equal(json_count(patch_data()), 5);
    assert_int_equal(certificate_check(&(struct certificate_pair){k.cert, k.key}, k.ca_cert, NOW_MS, &t.err), 0);
    struct keys again = complete(patched(""), NOW_MS);
    assert_null(t.patch);
    assert_memory_equal(again.install, k.install, INSTALL_KEY_SIZE);
    assert_string_equal(again.ca_cert, k.ca_cert);
    assert_string_equal(again.ca_key, k.ca_key);
    assert_string_equal(again.cert, k.cert);
    assert_string_equal(again.key, k.key);
}

static void no_two_installs_have_the_same_keys(void **state)
{
    (void)state;
    struct keys a = complete(EMPTY, NOW_MS), b = complete(EMPTY, NOW_MS);
    assert_memory_not_equal(a.install, b.install, INSTALL_KEY_SIZE);
    assert_string_not_equal(a.ca_key, b.ca_key);
    assert_string_not_equal(a.key, b.key);
}

static void empty_entries_are_missing_ones(void **state)
{
    (void)state;
    complete("{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{\"tls.crt\":\"\",\"tls.key\":\"\",\"install.key\":"
             "null}}",
             NOW_MS);
    assert_int_equal(json_count(patch_data()), 5);
}

static void the_certificate_is_renewed_when_two_thirds_are_over(void **state)
{
    (void)state;
    struct keys first = complete(EMPTY, NOW_MS);
    const char *secret = patched("");
    complete(secret, NOW_MS + 59 * CERTIFICATE_DAY_MS);
    assert_null(t.patch);
    struct keys second = complete(secret, NOW_MS + 60 * CERTIFICATE_DAY_MS);
    assert_int_equal(json_count(patch_data()), 2);
    assert_non_null(json_get(patch_data(), "tls.crt"));
    assert_non_null(json_get(patch_data(), "tls.key"));
    assert_string_equal(second.ca_cert, first.ca_cert);
    assert_memory_equal(second.install, first.install, INSTALL_KEY_SIZE);
    assert_string_not_equal(second.key, first.key);
    struct certificate_facts f;
    assert_int_equal(certificate_read(second.cert, &t.a, &f, &t.err), 0);
    assert_int_equal(f.until_ms, NOW_MS + 150 * CERTIFICATE_DAY_MS);
}

static void a_name_that_is_missing_takes_another_certificate(void **state)
{
    (void)state;
    static const char *const fewer[] = {"localhost"}, *const other[] = {"localhost", "10.0.0.1"};
    complete(EMPTY, NOW_MS);
    const char *secret = patched("");
    complete_for(secret, (struct certificate_names){fewer, 1}, NOW_MS);
    assert_null(t.patch);
    struct keys k = complete_for(secret, (struct certificate_names){other, 2}, NOW_MS);
    struct certificate_facts f;
    assert_int_equal(certificate_read(k.cert, &t.a, &f, &t.err), 0);
    assert_int_equal(f.names.n, 2);
    assert_string_equal(f.names.items[1], "10.0.0.1");
}

static void a_certificate_that_is_of_no_use_is_replaced(void **state)
{
    (void)state;
    complete(EMPTY, NOW_MS);
    const char *good = patched("");
    // The first of two members of the same name counts.
    const char *bad[] = {"\"tls.crt\":\"\",", "\"tls.key\":\"\",", "\"tls.crt\":\"eA==\",",
                         arena_printf(&t.a, "\"tls.key\":\"%s\",", base64(t.certs.other_key)),
                         arena_printf(&t.a, "\"tls.crt\":\"%s\",", base64(t.certs.server_cert))};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        t.patch = good;
        struct json *root;
        assert_int_equal(json_parse(good, strlen(good), NULL, &t.a, &root, &t.err), 0);
        const struct json *data = json_get(root, "data");
        struct keys k = complete(arena_printf(&t.a, "{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{%s%.*s}",
                                              bad[i], (int)data->len - 1, data->text + 1),
                                 NOW_MS);
        assert_int_equal(json_count(patch_data()), 2);
        assert_int_equal(certificate_check(&(struct certificate_pair){k.cert, k.key}, k.ca_cert, NOW_MS, &t.err), 0);
    }
}

static void an_authority_at_its_end_is_said(void **state)
{
    (void)state;
    complete(EMPTY, NOW_MS);
    complete_fails(patched(""), NOW_MS + 3651 * CERTIFICATE_DAY_MS,
                   "certificate has expired); remove all entries of the Secret, and the operator makes new ones");
}

static const char *supplied(const char *cert, const char *key, const char *ca)
{
    return arena_printf(&t.a,
                        "{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{\"tls.crt\":\"%s\",\"tls.key\":\"%s\","
                        "\"ca.crt\":\"%s\"}}",
                        base64(cert), base64(key), base64(ca));
}

static void certificates_of_somebody_else_are_used_and_left_alone(void **state)
{
    (void)state;
    struct keys k = complete(supplied(t.certs.server_cert, t.certs.server_key, t.certs.ca), NOW_MS);
    assert_int_equal(json_count(patch_data()), 1);
    assert_non_null(json_get(patch_data(), "install.key"));
    assert_string_equal(k.cert, t.certs.server_cert);
    assert_string_equal(k.key, t.certs.server_key);
    assert_string_equal(k.ca_cert, t.certs.ca);
    assert_null(k.ca_key);
}

static void what_is_supplied_must_be_whole_and_right(void **state)
{
    (void)state;
    const struct certs *c = &t.certs;
    complete_fails(supplied(c->server_cert, c->server_key, ""), NOW_MS, "ca.crt is missing: whoever supplies");
    complete_fails(supplied(c->server_cert, "", c->ca), NOW_MS, "tls.key is missing: whoever supplies");
    complete_fails(supplied("", c->server_key, c->ca), NOW_MS, "tls.crt is missing: whoever supplies");
    complete_fails(supplied(c->server_cert, c->other_key, c->ca), NOW_MS,
                   "cannot be used: the key is not that of the certificate");
    complete_fails(supplied(c->server_cert, c->server_key, c->other_ca), NOW_MS, "cannot be used: the certificate");
    complete_fails(supplied(c->expired_cert, c->client_key, c->ca), NOW_MS, "certificate has expired");
}

static void a_secret_that_cannot_be_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *secret, *why;
    } cases[] = {
        {"", ""},
        {"[]", "no resourceVersion"},
        {"{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{\"tls.crt\":\"?\"}}", "tls.crt is not base64"},
        {"{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{\"install.key\":\"c2hvcnQ=\"}}",
         "install.key has 5 bytes and not 32; remove it, and the operator makes one"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct keys k;
        assert_int_equal(keys_decode(cases[i].secret, strlen(cases[i].secret), &t.a, &k, &t.err), ERR_INVALID);
        assert_non_null(strstr(t.err.msg, cases[i].why));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_secret_is_filled),
        TEST(no_two_installs_have_the_same_keys),
        TEST(empty_entries_are_missing_ones),
        TEST(the_certificate_is_renewed_when_two_thirds_are_over),
        TEST(a_name_that_is_missing_takes_another_certificate),
        TEST(a_certificate_that_is_of_no_use_is_replaced),
        TEST(an_authority_at_its_end_is_said),
        TEST(certificates_of_somebody_else_are_used_and_left_alone),
        TEST(what_is_supplied_must_be_whole_and_right),
        TEST(a_secret_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
