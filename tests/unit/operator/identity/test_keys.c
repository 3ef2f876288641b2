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
    const char *patch, *back;
    const struct keys *memory; // of complete_fails()
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

static struct keys complete_with(const char *secret, const struct keys *memory, struct certificate_names for_names,
                                 int64_t now_ms)
{
    struct keys found = decode(secret), k;
    t.patch = NULL;
    if (keys_complete(&found, memory, for_names, now_ms, &t.a, &k, &t.patch, &t.err) < 0)
        fail_msg("%s", t.err.msg);
    t.back = memory ? keys_put_back(&found, memory, &k, &t.a) : NULL;
    return k;
}

static struct keys complete_for(const char *secret, struct certificate_names for_names, int64_t now_ms)
{
    return complete_with(secret, NULL, for_names, now_ms);
}

static struct keys complete(const char *secret, int64_t now_ms)
{
    return complete_for(secret, names, now_ms);
}

static void complete_fails(const char *secret, int64_t now_ms, const char *why)
{
    struct keys found = decode(secret), k;
    assert_int_equal(keys_complete(&found, t.memory, names, now_ms, &t.a, &k, &t.patch, &t.err), ERR_INVALID);
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

// Returns the Secret after the patch. It had none of these entries before.
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
    // The first of two members with the same name counts.
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
                   "certificate has expired); remove all entries of the Secret; a running operator puts its keys "
                   "back, and one that starts makes new keys");
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
    complete_fails(supplied(c->server_cert, c->server_key, ""), NOW_MS, "ca.crt is missing: supply tls.crt");
    complete_fails(supplied(c->server_cert, "", c->ca), NOW_MS, "tls.key is missing: supply tls.crt");
    complete_fails(supplied("", c->server_key, c->ca), NOW_MS, "tls.crt is missing: supply tls.crt");
    complete_fails(supplied(c->server_cert, c->other_key, c->ca), NOW_MS,
                   "cannot be used: the key does not match the certificate");
    complete_fails(supplied(c->server_cert, c->server_key, c->other_ca), NOW_MS, "cannot be used: the certificate");
    complete_fails(supplied(c->expired_cert, c->client_key, c->ca), NOW_MS, "certificate has expired");
}

// Returns a Secret with these entries, each a text or NULL for none. The install key is the same as in the keys.
static const char *secret_of(const struct keys *k, const char *without, const char *but)
{
    const struct {
        const char *name, *base64;
    } entries[] = {
        {"install.key", k->has_install ? base64_encode(BASE64_STANDARD, k->install, INSTALL_KEY_SIZE, &t.a) : NULL},
        {"ca.crt", k->ca_cert ? base64(k->ca_cert) : NULL},
        {"ca.key", k->ca_key ? base64(k->ca_key) : NULL},
        {"tls.crt", k->cert ? base64(k->cert) : NULL},
        {"tls.key", k->key ? base64(k->key) : NULL},
    };
    const char *data = but ? but : "";
    for (size_t i = 0; i < ARRAY_LEN(entries); i++)
        if (entries[i].base64 && !strstr(without, entries[i].name))
            data = arena_printf(&t.a, "%s%s\"%s\":\"%s\"", data, *data ? "," : "", entries[i].name, entries[i].base64);
    return arena_printf(&t.a, "{\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"7\"},\"data\":{%s}}", data);
}

static const char *member(const char *name, const char *text)
{
    return arena_printf(&t.a, "\"%s\":\"%s\"", name, base64(text));
}

static void what_is_gone_is_put_back_from_memory(void **state)
{
    (void)state;
    const struct keys memory = complete(EMPTY, NOW_MS);
    const struct {
        const char *gone, *back;
        size_t n;
    } cases[] = {
        {"install.key ca.crt ca.key tls.crt tls.key", "install.key, ca.crt, ca.key, tls.crt, tls.key", 5},
        {"install.key", "install.key", 1},
        {"ca.key", "ca.key", 1},
        {"ca.crt", "ca.crt", 1},
        {"ca.crt ca.key", "ca.crt, ca.key", 2},
        {"tls.crt tls.key", "tls.crt, tls.key", 2},
        {"tls.key", "tls.key", 1},
        {"install.key ca.key tls.crt", "install.key, ca.key, tls.crt", 3},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct keys k = complete_with(secret_of(&memory, cases[i].gone, NULL), &memory, names, NOW_MS);
        assert_true(keys_equal(&k, &memory));
        assert_string_equal(t.back, cases[i].back);
        assert_int_equal(json_count(patch_data()), cases[i].n);
        assert_string_equal(keys_id(&k, &t.a), keys_id(&memory, &t.a));
    }
    complete_with(secret_of(&memory, "", NULL), &memory, names, NOW_MS);
    assert_null(t.patch);
    assert_null(t.back);
}

static void supplied_certificates_are_put_back_too(void **state)
{
    (void)state;
    const struct certs *c = &t.certs;
    const struct keys memory = complete(supplied(c->server_cert, c->server_key, c->ca), NOW_MS);
    const char *gone[] = {"install.key ca.crt tls.crt tls.key", "tls.key", "ca.crt", "ca.crt tls.crt"};
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        struct keys k = complete_with(secret_of(&memory, gone[i], NULL), &memory, names, NOW_MS);
        assert_true(keys_equal(&k, &memory));
    }
}

// The old leaf is not mixed with the new one.
static void half_of_a_supplied_pair_is_refused_and_not_mixed(void **state)
{
    (void)state;
    const struct certs *c = &t.certs;
    const struct keys memory = complete(supplied(c->server_cert, c->server_key, c->ca), NOW_MS);
    t.memory = &memory;
    complete_fails(secret_of(&memory, "tls.crt tls.key", member("tls.crt", c->client_cert)), NOW_MS,
                   "tls.key is missing: supply tls.crt");
    complete_fails(secret_of(&memory, "ca.crt", member("ca.crt", c->other_ca)), NOW_MS, "cannot be used");
}

static void keys_of_another_install_are_used_as_they_are(void **state)
{
    (void)state;
    const struct keys memory = complete(EMPTY, NOW_MS), other = complete(EMPTY, NOW_MS);
    struct keys k = complete_with(secret_of(&other, "", NULL), &memory, names, NOW_MS);
    assert_null(t.patch);
    assert_null(t.back);
    assert_true(keys_equal(&k, &other));
    assert_string_not_equal(keys_id(&k, &t.a), keys_id(&memory, &t.a));
    // The memory has none of the missing entries.
    k = complete_with(secret_of(&other, "tls.crt tls.key", NULL), &memory, names, NOW_MS);
    assert_int_equal(json_count(patch_data()), 2);
    assert_null(t.back);
    assert_string_equal(k.ca_cert, other.ca_cert);
    t.memory = &memory;
    complete_fails(secret_of(&other, "ca.crt", NULL), NOW_MS, "ca.crt is missing beside ca.key");
    complete_fails(secret_of(&other, "ca.key tls.key", NULL), NOW_MS, "tls.key is missing: supply tls.crt");
}

static void an_authority_with_the_key_of_another_is_refused(void **state)
{
    (void)state;
    const struct keys memory = complete(EMPTY, NOW_MS), other = complete(EMPTY, NOW_MS);
    complete_fails(secret_of(&other, "ca.key", member("ca.key", memory.ca_key)), NOW_MS,
                   "ca.crt and ca.key cannot be used together");
    t.memory = &memory;
    complete_fails(secret_of(&other, "ca.key", member("ca.key", memory.ca_key)), NOW_MS,
                   "ca.crt and ca.key cannot be used together");
    complete_fails(secret_of(&memory, "ca.crt", member("ca.crt", "x")), NOW_MS, "ca.crt and ca.key cannot be used");
}

static void the_id_is_of_what_pods_trust(void **state)
{
    (void)state;
    const struct keys first = complete(EMPTY, NOW_MS);
    const char *id = keys_id(&first, &t.a);
    assert_int_equal(strlen(id), 25);
    assert_int_equal(strspn(id, "0123456789abcdef"), 12);
    assert_int_equal(id[12], '-');
    struct keys renewed = complete_with(secret_of(&first, "", NULL), &first, names, NOW_MS + 61 * CERTIFICATE_DAY_MS);
    assert_string_not_equal(renewed.cert, first.cert);
    assert_string_equal(keys_id(&renewed, &t.a), id);
    // The same certificate, with blank lines.
    renewed.ca_cert = arena_printf(&t.a, "\n%s\n", first.ca_cert);
    assert_string_equal(keys_id(&renewed, &t.a), id);
    struct keys other = first;
    other.install[0] ^= 1;
    assert_string_not_equal(keys_id(&other, &t.a), id);
    assert_memory_equal(keys_id(&other, &t.a), id, 13);
}

static void a_secret_is_made_again_as_its_installer_knew_it(void **state)
{
    (void)state;
    struct keys k = decode("{\"metadata\":{\"name\":\"cadre-keys\",\"resourceVersion\":\"7\",\"uid\":\"u\",\"labels\":{"
                           "\"app.kubernetes.io/managed-by\":\"Helm\",\"app.kubernetes.io/version\":\"1\"},"
                           "\"annotations\":{\"helm.sh/resource-policy\":\"keep\"}}}");
    assert_string_equal(keys_secret("cadre-keys", k.metadata, &t.a),
                        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"cadre-keys\",\"labels\":{"
                        "\"app.kubernetes.io/managed-by\":\"Helm\"},\"annotations\":{\"helm.sh/resource-policy\":"
                        "\"keep\"}},\"type\":\"Opaque\"}");
    assert_string_equal(keys_secret("cadre-keys", NULL, &t.a),
                        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"cadre-keys\"},\"type\":"
                        "\"Opaque\"}");
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
         "install.key has 5 bytes, but needs 32; remove it, and the operator writes a new one"},
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
        TEST(what_is_gone_is_put_back_from_memory),
        TEST(supplied_certificates_are_put_back_too),
        TEST(half_of_a_supplied_pair_is_refused_and_not_mixed),
        TEST(keys_of_another_install_are_used_as_they_are),
        TEST(an_authority_with_the_key_of_another_is_refused),
        TEST(the_id_is_of_what_pods_trust),
        TEST(a_secret_is_made_again_as_its_installer_knew_it),
        TEST(a_secret_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
