// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/certificate.h"

#include "common/base/mem.h"
#include "tests/fakeapi/certs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#define NOW_MS INT64_C(1800000000000) // 2027-01-15 08:00:00 UTC
#define HOUR_MS (INT64_C(60) * 60 * 1000)

static const char *const dns[] = {"cadre-operator.cadre-system.svc", "localhost", "127.0.0.1", "::1"};
static const struct certificate_names names = {dns, ARRAY_LEN(dns)};

static struct {
    struct arena a;
    struct err err;
    struct certificate_pair ca, leaf;
} t;

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    return certificate_make_authority(NOW_MS, &t.a, &t.ca, &t.err) ||
           certificate_make_leaf(&t.ca, names, NOW_MS, &t.a, &t.leaf, &t.err);
}

static int teardown(void **state)
{
    (void)state;
    arena_done(&t.a);
    return 0;
}

static X509 *x509_of(const char *pem)
{
    BIO *b = BIO_new_mem_buf(pem, -1);
    X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
    BIO_free(b);
    assert_non_null(x);
    return x;
}

static void the_authority_may_sign_leaves_and_nothing_else(void **state)
{
    (void)state;
    X509 *ca = x509_of(t.ca.cert);
    EVP_PKEY *key = X509_get0_pubkey(ca);
    assert_int_equal(X509_verify(ca, key), 1);
    assert_true(X509_check_ca(ca) == 1);
    assert_int_equal(X509_get_pathlen(ca), 0);
    assert_int_equal(X509_get_key_usage(ca), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    assert_non_null(X509_get0_subject_key_id(ca));
    assert_int_equal(X509_get_version(ca), X509_VERSION_3);
    assert_int_equal(EVP_PKEY_get_bits(key), 256);
    X509_free(ca);
    struct certificate_facts f;
    assert_int_equal(certificate_read(t.ca.cert, &t.a, &f, &t.err), 0);
    assert_int_equal(f.from_ms, NOW_MS - HOUR_MS);
    assert_int_equal(f.until_ms, NOW_MS + 3650 * CERTIFICATE_DAY_MS);
    assert_int_equal(f.names.n, 0);
}

static void a_leaf_is_a_servers_and_the_authoritys(void **state)
{
    (void)state;
    X509 *ca = x509_of(t.ca.cert), *leaf = x509_of(t.leaf.cert);
    assert_int_equal(X509_verify(leaf, X509_get0_pubkey(ca)), 1);
    assert_int_equal(X509_check_issued(ca, leaf), X509_V_OK);
    assert_true(X509_check_ca(leaf) == 0);
    assert_int_equal(X509_get_key_usage(leaf), KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_extended_key_usage(leaf), XKU_SSL_SERVER);
    assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(leaf), X509_get0_subject_key_id(ca)), 0);
    assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(leaf), X509_get0_serialNumber(ca)), 0);
    assert_int_equal(X509_check_host(leaf, dns[0], 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(leaf, "cadre-operator", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(leaf, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(leaf, "::1", 0), 1);
    assert_int_equal(X509_check_ip_asc(leaf, "127.0.0.2", 0), 0);
    X509_free(ca);
    X509_free(leaf);
    assert_int_equal(certificate_check(&t.leaf, t.ca.cert, NOW_MS, &t.err), 0);
}

static void its_facts_can_be_read(void **state)
{
    (void)state;
    struct certificate_facts f;
    assert_int_equal(certificate_read(t.leaf.cert, &t.a, &f, &t.err), 0);
    assert_int_equal(f.from_ms, NOW_MS - HOUR_MS);
    assert_int_equal(f.until_ms, NOW_MS + 90 * CERTIFICATE_DAY_MS);
    assert_int_equal(f.names.n, names.n);
    for (size_t i = 0; i < names.n; i++)
        assert_string_equal(f.names.items[i], names.items[i]);
    assert_int_equal(certificate_read("", &t.a, &f, &t.err), ERR_INVALID);
    assert_int_equal(certificate_read(t.leaf.key, &t.a, &f, &t.err), ERR_INVALID);
}

static void a_leaf_ends_with_its_authority_at_the_latest(void **state)
{
    (void)state;
    struct certificate_facts f;
    int64_t late = NOW_MS + 3600 * CERTIFICATE_DAY_MS;
    assert_int_equal(certificate_make_leaf(&t.ca, names, late, &t.a, &t.leaf, &t.err), 0);
    assert_int_equal(certificate_read(t.leaf.cert, &t.a, &f, &t.err), 0);
    assert_int_equal(f.until_ms, NOW_MS + 3650 * CERTIFICATE_DAY_MS);
}

static void check_fails(const struct certificate_pair *leaf, const char *ca, int64_t now_ms, const char *why)
{
    t.err = ERR_INIT;
    assert_int_equal(certificate_check(leaf, ca, now_ms, &t.err), ERR_INVALID);
    if (!strstr(t.err.msg, why))
        fail_msg("%s", t.err.msg);
}

static void what_does_not_belong_together_is_noticed(void **state)
{
    (void)state;
    struct certificate_pair other_ca, other;
    assert_int_equal(certificate_make_authority(NOW_MS, &t.a, &other_ca, &t.err), 0);
    assert_int_equal(certificate_make_leaf(&other_ca, names, NOW_MS, &t.a, &other, &t.err), 0);
    check_fails(&(struct certificate_pair){t.leaf.cert, other.key}, t.ca.cert, NOW_MS,
                "the key does not match the certificate");
    check_fails(&t.leaf, other_ca.cert, NOW_MS, "the certificate does not come from the authority: ");
    check_fails(&t.leaf, t.ca.cert, NOW_MS + 91 * CERTIFICATE_DAY_MS, "certificate has expired");
    check_fails(&t.leaf, t.ca.cert, NOW_MS - CERTIFICATE_DAY_MS, "certificate is not yet valid");
    check_fails(&(struct certificate_pair){"", t.leaf.key}, t.ca.cert, NOW_MS, "certificate is not in PEM form");
    check_fails(&(struct certificate_pair){t.leaf.cert, ""}, t.ca.cert, NOW_MS, "the key is not in PEM form");
    check_fails(&t.leaf, "x", NOW_MS, "the authority's certificate is not in PEM form");
    struct certificate_pair mixed = {t.ca.cert, other_ca.key};
    assert_int_equal(certificate_make_leaf(&mixed, names, NOW_MS, &t.a, &other, &t.err), ERR_INVALID);
    mixed = (struct certificate_pair){"x", "y"};
    assert_int_equal(certificate_make_leaf(&mixed, names, NOW_MS, &t.a, &other, &t.err), ERR_INVALID);
}

static void a_key_with_a_passphrase_is_not_asked_for(void **state)
{
    (void)state;
    struct certs c;
    certs_make(&c);
    check_fails(&(struct certificate_pair){t.leaf.cert, c.encrypted_key}, t.ca.cert, NOW_MS,
                "the key is not in PEM form or has a passphrase");
    certs_done(&c);
}

static void another_authoritys_certificate_will_do_too(void **state)
{
    (void)state;
    struct certs c;
    certs_make(&c);
    struct certificate_pair server = {c.server_cert, c.server_key};
    assert_int_equal(certificate_check(&server, c.ca, NOW_MS, &t.err), 0);
    // Several authorities, and a chain behind the certificate
    assert_int_equal(certificate_check(&server, arena_printf(&t.a, "%s%s", t.ca.cert, c.ca), NOW_MS, &t.err), 0);
    server.cert = arena_printf(&t.a, "%s%s", c.server_cert, c.ca);
    assert_int_equal(certificate_check(&server, c.ca, NOW_MS, &t.err), 0);
    certs_done(&c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_authority_may_sign_leaves_and_nothing_else),
        TEST(a_leaf_is_a_servers_and_the_authoritys),
        TEST(its_facts_can_be_read),
        TEST(a_leaf_ends_with_its_authority_at_the_latest),
        TEST(what_does_not_belong_together_is_noticed),
        TEST(a_key_with_a_passphrase_is_not_asked_for),
        TEST(another_authoritys_certificate_will_do_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
