// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/certificate.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

enum { SERIAL_SIZE = 16, CHAIN_MAX = 16, ID_BYTES = 6 };
#define HOUR_MS (INT64_C(60) * 60 * 1000)

static void bio_p(BIO **b)
{
    BIO_free(*b);
}

static void key_p(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
}

static void cert_p(X509 **x)
{
    X509_free(*x);
}

static void chain_p(STACK_OF(X509) * *s)
{
    sk_X509_pop_free(*s, X509_free);
}

// Returns the last error of OpenSSL, and empties its queue.
static int failed(struct err *err, int code, const char *what)
{
    char why[160] = "out of memory";
    unsigned long e = ERR_peek_last_error();
    if (e)
        ERR_error_string_n(e, why, sizeof why);
    ERR_clear_error();
    return err_set(err, code, "%s: %s", what, why);
}

// --- PEM

static int no_passphrase(char *buf, int size, int rwflag, void *ctx) // NOLINT(readability-non-const-parameter)
{
    (void)buf, (void)size, (void)rwflag, (void)ctx;
    return -1;
}

static STACK_OF(X509) * read_chain(const char *pem)
{
    _cleanup_(bio_p) BIO *b = BIO_new_mem_buf(pem, -1);
    STACK_OF(X509) *all = sk_X509_new_null();
    X509 *x;
    while (b && all && sk_X509_num(all) < CHAIN_MAX && (x = PEM_read_bio_X509(b, NULL, no_passphrase, NULL)))
        if (sk_X509_push(all, x) <= 0)
            X509_free(x);
    ERR_clear_error(); // clears the error of the end of the text
    return all;
}

static X509 *read_first(const char *pem)
{
    _cleanup_(bio_p) BIO *b = BIO_new_mem_buf(pem, -1);
    return b ? PEM_read_bio_X509(b, NULL, no_passphrase, NULL) : NULL;
}

static EVP_PKEY *read_key(const char *pem)
{
    _cleanup_(bio_p) BIO *b = BIO_new_mem_buf(pem, -1);
    return b ? PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL) : NULL;
}

static const char *bio_text(BIO *b, struct arena *a)
{
    char *text;
    long n = BIO_get_mem_data(b, &text);
    return arena_strndup(a, text, (size_t)n);
}

static int write_pair(X509 *cert, EVP_PKEY *key, struct arena *a, struct certificate_pair *ret, struct err *err)
{
    _cleanup_(bio_p) BIO *c = BIO_new(BIO_s_mem());
    _cleanup_(bio_p) BIO *k = BIO_new(BIO_s_secmem());
    if (!c || !k || !PEM_write_bio_X509(c, cert) || !PEM_write_bio_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL))
        return failed(err, ERR_INTERNAL, "a new certificate cannot be written");
    *ret = (struct certificate_pair){bio_text(c, a), bio_text(k, a)};
    return 0;
}

// --- making

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(cert, e, -1);
    X509_EXTENSION_free(e);
    return ok;
}

static GENERAL_NAME *general_name(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    int size = inet_pton(AF_INET, name, address) == 1 ? 4 : inet_pton(AF_INET6, name, address) == 1 ? 16 : 0;
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_STRING *s = size ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
    if (!g || !s || !ASN1_STRING_set(s, size ? (const char *)address : name, size ? size : -1)) {
        GENERAL_NAME_free(g);
        ASN1_STRING_free(s);
        return NULL;
    }
    GENERAL_NAME_set0_value(g, size ? GEN_IPADD : GEN_DNS, s);
    return g;
}

static bool add_names(X509 *cert, struct certificate_names names)
{
    GENERAL_NAMES *all = GENERAL_NAMES_new();
    bool ok = all != NULL;
    for (size_t i = 0; ok && i < names.n; i++) {
        GENERAL_NAME *g = general_name(names.items[i]);
        ok = g && sk_GENERAL_NAME_push(all, g) > 0;
        if (!ok)
            GENERAL_NAME_free(g);
    }
    ok = ok && X509_add1_ext_i2d(cert, NID_subject_alt_name, all, 0, 0) == 1;
    GENERAL_NAMES_free(all);
    return ok;
}

static bool set_serial(X509 *cert)
{
    unsigned char bytes[SERIAL_SIZE];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (bytes[0] & 0x7f) | 0x40; // positive, and always of the same length
    BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
    BN_free(n);
    return ok;
}

// Makes the part that both kinds share. Without an issuer, the certificate is self-signed.
static X509 *cert_new(const char *name, EVP_PKEY *key, X509 *issuer, int64_t from_ms, int64_t until_ms)
{
    X509 *x = X509_new();
    if (x && X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
        ASN1_TIME_set(X509_getm_notBefore(x), (time_t)(from_ms / 1000)) &&
        ASN1_TIME_set(X509_getm_notAfter(x), (time_t)(until_ms / 1000)) && X509_set_pubkey(x, key) &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1,
                                   0) &&
        X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x)) &&
        add_extension(x, issuer ? issuer : x, NID_subject_key_identifier, "hash") &&
        add_extension(x, issuer ? issuer : x, NID_authority_key_identifier, "keyid:always"))
        return x;
    X509_free(x);
    return NULL;
}

int certificate_make_authority(int64_t now_ms, struct arena *a, struct certificate_pair *ret, struct err *err)
{
    _cleanup_(key_p) EVP_PKEY *key = EVP_EC_gen("P-256");
    int64_t until = now_ms + CERTIFICATE_AUTHORITY_DAYS * CERTIFICATE_DAY_MS;
    _cleanup_(cert_p) X509 *x = key ? cert_new("Cadre", key, NULL, now_ms - HOUR_MS, until) : NULL;
    if (!x || !add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") || !X509_sign(x, key, EVP_sha256()))
        return failed(err, ERR_INTERNAL, "a certificate authority cannot be made");
    return write_pair(x, key, a, ret, err);
}

static int64_t time_ms(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) ? (int64_t)timegm(&tm) * 1000 : 0;
}

static int read_authority(const struct certificate_pair *authority, X509 **ret, EVP_PKEY **ret_key, struct err *err)
{
    *ret = read_first(authority->cert);
    *ret_key = *ret ? read_key(authority->key) : NULL;
    if (!*ret_key)
        return failed(err, ERR_INVALID, "the authority's certificate or key cannot be read");
    if (X509_check_private_key(*ret, *ret_key) != 1)
        return failed(err, ERR_INVALID, "the authority's key does not match its certificate");
    return 0;
}

int certificate_check_authority(const struct certificate_pair *authority, struct err *err)
{
    _cleanup_(cert_p) X509 *ca = NULL;
    _cleanup_(key_p) EVP_PKEY *ca_key = NULL;
    return read_authority(authority, &ca, &ca_key, err);
}

int certificate_make_leaf(const struct certificate_pair *authority, struct certificate_names names, int64_t now_ms,
                          struct arena *a, struct certificate_pair *ret, struct err *err)
{
    _cleanup_(cert_p) X509 *ca = NULL;
    _cleanup_(key_p) EVP_PKEY *ca_key = NULL;
    if (read_authority(authority, &ca, &ca_key, err) < 0)
        return err->code;
    int64_t until = MIN(now_ms + CERTIFICATE_LEAF_DAYS * CERTIFICATE_DAY_MS, time_ms(X509_get0_notAfter(ca)));
    _cleanup_(key_p) EVP_PKEY *key = EVP_EC_gen("P-256");
    _cleanup_(cert_p) X509 *x = key ? cert_new("cadre-operator", key, ca, now_ms - HOUR_MS, until) : NULL;
    if (!x || !add_extension(x, ca, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(x, ca, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(x, ca, NID_ext_key_usage, "serverAuth") || !add_names(x, names) ||
        !X509_sign(x, ca_key, EVP_sha256()))
        return failed(err, ERR_INTERNAL, "a certificate cannot be made");
    return write_pair(x, key, a, ret, err);
}

// --- reading

static const char *name_text(const GENERAL_NAME *g, struct arena *a)
{
    int type;
    const ASN1_STRING *s = GENERAL_NAME_get0_value(g, &type);
    char text[INET6_ADDRSTRLEN];
    if (type == GEN_DNS)
        return arena_strndup(a, (const char *)ASN1_STRING_get0_data(s), (size_t)ASN1_STRING_length(s));
    if (type == GEN_IPADD && (ASN1_STRING_length(s) == 4 || ASN1_STRING_length(s) == 16) &&
        inet_ntop(ASN1_STRING_length(s) == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(s), text, sizeof text))
        return arena_strdup(a, text);
    return NULL;
}

static struct certificate_names read_names(const X509 *x, struct arena *a)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    int n = all ? sk_GENERAL_NAME_num(all) : 0;
    const char **items = arena_array(a, (size_t)n, sizeof *items);
    size_t kept = 0;
    for (int i = 0; i < n; i++)
        if ((items[kept] = name_text(sk_GENERAL_NAME_value(all, i), a)))
            kept++;
    GENERAL_NAMES_free(all);
    ERR_clear_error();
    return (struct certificate_names){items, kept};
}

int certificate_read(const char *pem, struct arena *a, struct certificate_facts *ret, struct err *err)
{
    _cleanup_(cert_p) X509 *x = read_first(pem);
    if (!x)
        return failed(err, ERR_INVALID, "not a certificate in PEM form");
    *ret = (struct certificate_facts){
        .from_ms = time_ms(X509_get0_notBefore(x)),
        .until_ms = time_ms(X509_get0_notAfter(x)),
        .names = read_names(x, a),
    };
    return 0;
}

const char *certificate_id(const char *pem, struct arena *a)
{
    _cleanup_(cert_p) X509 *x = read_first(pem);
    unsigned char digest[EVP_MAX_MD_SIZE];
    if (!x || !X509_digest(x, EVP_sha256(), digest, NULL)) {
        ERR_clear_error();
        return NULL;
    }
    return str_hex(digest, ID_BYTES, arena_alloc(a, 2 * ID_BYTES + 1));
}

static int verify_chain(X509 *leaf, STACK_OF(X509) * chain, STACK_OF(X509) * authorities, int64_t now_ms,
                        struct err *err)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    for (int i = 0; store && i < sk_X509_num(authorities); i++)
        X509_STORE_add_cert(store, sk_X509_value(authorities, i));
    int r = 0;
    if (!store || !ctx || !X509_STORE_CTX_init(ctx, store, leaf, chain)) {
        r = failed(err, ERR_INTERNAL, "the certificate cannot be checked");
    } else {
        X509_STORE_CTX_set_time(ctx, 0, (time_t)(now_ms / 1000));
        X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
        X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_PARTIAL_CHAIN); // ca.crt may hold an authority that is not a root
        if (X509_verify_cert(ctx) != 1)
            r = err_set(err, ERR_INVALID, "the certificate does not come from the authority: %s",
                        X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
    }
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    ERR_clear_error();
    return r;
}

int certificate_check(const struct certificate_pair *leaf, const char *ca_pem, int64_t now_ms, struct err *err)
{
    _cleanup_(chain_p) STACK_OF(X509) *chain = read_chain(leaf->cert), *authorities = read_chain(ca_pem);
    _cleanup_(key_p) EVP_PKEY *key = read_key(leaf->key);
    X509 *first = sk_X509_value(chain, 0);
    if (!first)
        return err_set(err, ERR_INVALID, "the certificate is not in PEM form");
    if (!key)
        return failed(err, ERR_INVALID, "the key is not in PEM form or has a passphrase");
    if (sk_X509_num(authorities) <= 0)
        return err_set(err, ERR_INVALID, "the authority's certificate is not in PEM form");
    if (X509_check_private_key(first, key) != 1)
        return failed(err, ERR_INVALID, "the key does not match the certificate");
    return verify_chain(first, chain, authorities, now_ms, err);
}
