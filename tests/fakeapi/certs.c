// SPDX-License-Identifier: Apache-2.0
#include "tests/fakeapi/certs.h"

#include "common/base/mem.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

struct dates {
    const char *from, *to; // ASN.1 generalised time
};

static const struct dates valid = {"20200101000000Z", "29990101000000Z"};

static char *bio_take(BIO *b)
{
    char *data;
    long n = BIO_get_mem_data(b, &data);
    char *text = xmalloc((size_t)n + 1);
    memcpy(text, data, (size_t)n);
    text[n] = '\0';
    BIO_free(b);
    return text;
}

static char *key_pem(EVP_PKEY *key, const char *passphrase)
{
    BIO *b = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(b, key, passphrase ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL, (void *)passphrase);
    return bio_take(b);
}

static char *cert_pem(X509 *cert)
{
    BIO *b = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(b, cert);
    return bio_take(b);
}

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    X509_add_ext(cert, e, -1);
    X509_EXTENSION_free(e);
}

static X509 *cert_new(const char *name, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key, struct dates dates,
                      const char *alt_names)
{
    static long serial = 1;
    X509 *cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), serial++);
    ASN1_TIME_set_string(X509_getm_notBefore(cert), dates.from);
    ASN1_TIME_set_string(X509_getm_notAfter(cert), dates.to);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert));
    add_extension(cert, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
    if (alt_names)
        add_extension(cert, NID_subject_alt_name, alt_names);
    X509_sign(cert, issuer_key, EVP_sha256());
    return cert;
}

static char *leaf_pem(const char *name, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key, struct dates dates,
                      const char *alt_names)
{
    X509 *cert = cert_new(name, key, ca, ca_key, dates, alt_names);
    char *pem = cert_pem(cert);
    X509_free(cert);
    return pem;
}

void certs_make(struct certs *ret)
{
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *server_key = EVP_EC_gen("P-256"), *client_key = EVP_EC_gen("P-256");
    EVP_PKEY *other_key = EVP_EC_gen("P-256");
    X509 *ca = cert_new("test-ca", ca_key, NULL, ca_key, valid, NULL);
    const struct dates expired = {"20190101000000Z", "20200102030405Z"},
                       future = {"29990101000000Z", "29990201000000Z"};
    *ret = (struct certs){
        .ca = cert_pem(ca),
        .server_cert = leaf_pem("apiserver", server_key, ca, ca_key, valid, "IP:127.0.0.1,DNS:kubernetes"),
        .server_key = key_pem(server_key, NULL),
        .client_cert = leaf_pem("admin", client_key, ca, ca_key, valid, NULL),
        .client_key = key_pem(client_key, NULL),
        .expired_cert = leaf_pem("admin", client_key, ca, ca_key, expired, NULL),
        .future_cert = leaf_pem("admin", client_key, ca, ca_key, future, NULL),
        .other_ca = leaf_pem("other-ca", other_key, NULL, other_key, valid, NULL),
        .other_key = key_pem(other_key, NULL),
        .encrypted_key = key_pem(client_key, "secret"),
    };
    X509_free(ca);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(server_key);
    EVP_PKEY_free(client_key);
    EVP_PKEY_free(other_key);
}

void certs_done(struct certs *c)
{
    char **all[] = {&c->ca,           &c->server_cert, &c->server_key, &c->client_cert, &c->client_key,
                    &c->expired_cert, &c->future_cert, &c->other_ca,   &c->other_key,   &c->encrypted_key};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        free(TAKE_PTR(*all[i]));
}
