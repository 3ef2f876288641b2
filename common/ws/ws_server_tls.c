// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_server_tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

static int fail(struct err *err, const char *what)
{
    char reason[160];
    ERR_error_string_n(ERR_peek_last_error(), reason, sizeof reason);
    ERR_clear_error();
    return err_set(err, ERR_INVALID, "the server's %s cannot be used: %s", what, reason);
}

// The first certificate of the text is the server's, the others its chain.
static int use_certificates(SSL_CTX *ctx, const char *pem, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    int ok = cert && SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_clear_chain_certs(ctx) == 1;
    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
        ok = SSL_CTX_add1_chain_cert(ctx, cert) == 1;
        X509_free(cert);
    }
    BIO_free(bio);
    if (!ok)
        return fail(err, "certificate");
    ERR_clear_error(); // the end of the text counts as one
    return 0;
}

static int use_key(SSL_CTX *ctx, const char *pem, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    int ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok ? 0 : fail(err, "private key");
}

// Existing connections keep their certificate and key: OpenSSL copies the references for each.
int ws_server_tls_set(SSL_CTX *ctx, const char *cert_pem, const char *key_pem, struct err *err)
{
    int r = use_certificates(ctx, cert_pem, err);
    return r < 0 ? r : use_key(ctx, key_pem, err);
}

int ws_server_tls_check(const char *cert_pem, const char *key_pem, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx)
        abort();
    int r = ws_server_tls_set(ctx, cert_pem, key_pem, err);
    SSL_CTX_free(ctx);
    return r;
}

void ws_server_tls_prepare(SSL_CTX *ctx)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    // Otherwise, libwebsockets would look for another of its hosts by the name that the client sent.
    SSL_CTX_set_tlsext_servername_callback(ctx, NULL);
}
