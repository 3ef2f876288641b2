// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_tls.h"

#include "common/base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct ws_tls {
    unsigned refs;
    SSL_CTX *ctx;
    BIO_METHOD *socket; // like OpenSSL's own, but a peer that is gone raises no SIGPIPE
};

struct ws_tls_stream {
    struct ws_tls *tls;
    SSL *ssl;
    int fd;
    bool wants_write, broken;
    bool drained; // the last read got less than there was room for
};

static int tls_fail(struct err *err, const char *what)
{
    unsigned long e = ERR_get_error();
    char reason[160];
    ERR_error_string_n(e, reason, sizeof reason);
    ERR_clear_error();
    return err_set(err, ERR_IO, "%s: %s", what, e ? reason : "no reason given");
}

static int socket_write(BIO *b, const char *data, int len)
{
    const struct ws_tls_stream *s = BIO_get_data(b);
    ssize_t n = send(s->fd, data, (size_t)len, MSG_NOSIGNAL);
    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(b);
    return (int)n;
}

static int socket_read(BIO *b, char *data, int len)
{
    struct ws_tls_stream *s = BIO_get_data(b);
    ssize_t n = recv(s->fd, data, (size_t)len, 0);
    s->drained = n < len;
    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(b);
    return (int)n;
}

static long socket_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    (void)b;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

static BIO_METHOD *socket_method(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "cadre socket");
    if (!m)
        abort();
    BIO_meth_set_write(m, socket_write);
    BIO_meth_set_read(m, socket_read);
    BIO_meth_set_ctrl(m, socket_ctrl);
    return m;
}

static int trust(SSL_CTX *ctx, const char *ca_pem, struct err *err)
{
    BIO *pem = BIO_new_mem_buf(ca_pem, -1);
    int n = 0;
    for (X509 *ca; (ca = PEM_read_bio_X509(pem, NULL, NULL, NULL)); n++) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca);
        X509_free(ca);
    }
    BIO_free(pem);
    unsigned long e = ERR_peek_last_error();
    bool clean = ERR_GET_REASON(e) == PEM_R_NO_START_LINE; // the end of the text, not something broken in it
    ERR_clear_error();
    if (n == 0 || !clean)
        return err_set(err, ERR_INVALID, "the CA to trust is not a list of PEM certificates");
    return 0;
}

struct ws_tls *ws_tls_new(const char *ca_pem, struct err *err)
{
    static const unsigned char alpn[] = "\x08http/1.1";
    struct ws_tls *tls = xcalloc(1, sizeof *tls);
    *tls = (struct ws_tls){.refs = 1, .ctx = SSL_CTX_new(TLS_client_method()), .socket = socket_method()};
    if (!tls->ctx)
        abort();
    SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_read_ahead(tls->ctx, 1); // otherwise, the head of each TLS record takes its own read
    SSL_CTX_set_alpn_protos(tls->ctx, alpn, sizeof alpn - 1);
    SSL_CTX_set_mode(tls->ctx,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    // A websocket has a close frame of its own; without renegotiation a write never waits for a read.
    SSL_CTX_set_options(tls->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
    if (!ca_pem)
        SSL_CTX_set_default_verify_paths(tls->ctx);
    else if (trust(tls->ctx, ca_pem, err) < 0) {
        ws_tls_unref(tls);
        return NULL;
    }
    return tls;
}

struct ws_tls *ws_tls_ref(struct ws_tls *tls)
{
    tls->refs++;
    return tls;
}

void ws_tls_unref(struct ws_tls *tls)
{
    if (!tls || --tls->refs)
        return;
    SSL_CTX_free(tls->ctx);
    BIO_meth_free(tls->socket);
    free(tls);
}

static bool set_name(SSL *ssl, const char *name)
{
    unsigned char ip[16];
    if (inet_pton(AF_INET, name, ip) == 1 || inet_pton(AF_INET6, name, ip) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1;
}

struct ws_tls_stream *ws_tls_stream_new(struct ws_tls *tls, int fd, const char *server_name, struct err *err)
{
    struct ws_tls_stream *s = xcalloc(1, sizeof *s);
    *s = (struct ws_tls_stream){.tls = ws_tls_ref(tls), .ssl = SSL_new(tls->ctx), .fd = fd};
    BIO *bio = BIO_new(tls->socket);
    if (!s->ssl || !bio)
        abort();
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    SSL_set_connect_state(s->ssl);
    if (!set_name(s->ssl, server_name)) {
        err_set(err, ERR_INVALID, "\"%s\" cannot be the name of a TLS server", server_name);
        ws_tls_stream_free(s);
        ERR_clear_error();
        return NULL;
    }
    return s;
}

void ws_tls_stream_free(struct ws_tls_stream *s)
{
    if (!s)
        return;
    if (!s->broken && SSL_is_init_finished(s->ssl))
        SSL_shutdown(s->ssl);
    ERR_clear_error();
    SSL_free(s->ssl);
    ws_tls_unref(s->tls);
    free(s);
}

bool ws_tls_stream_wants_write(const struct ws_tls_stream *s)
{
    return s->wants_write;
}

// The meaning of OpenSSL's result, in the terms of the header.
static int verdict(struct ws_tls_stream *s, int ret, const char *what, struct err *err)
{
    int saved = errno, e = SSL_get_error(s->ssl, ret);
    s->wants_write = e == SSL_ERROR_WANT_WRITE;
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE)
        return 0;
    s->broken = true;
    if (e == SSL_ERROR_ZERO_RETURN)
        return err_set(err, ERR_GONE, "the peer ended the connection");
    if (e == SSL_ERROR_SYSCALL && ERR_peek_error() == 0)
        return err_set(err, saved == 0 ? ERR_GONE : ERR_IO, "%s: %s", what,
                       saved == 0 ? "the peer ended the connection" : strerror(saved));
    return tls_fail(err, what);
}

bool ws_tls_stream_drained(const struct ws_tls_stream *s)
{
    return s->drained && !SSL_has_pending(s->ssl);
}

int ws_tls_stream_handshake(struct ws_tls_stream *s, struct err *err)
{
    ERR_clear_error();
    errno = 0;
    int ret = SSL_do_handshake(s->ssl);
    if (ret == 1)
        return 1;
    long verify = SSL_get_verify_result(s->ssl);
    int code = verdict(s, ret, "TLS", err);
    if (code < 0 && verify != X509_V_OK)
        return err_set(err, ERR_FORBIDDEN,
                       "TLS: the server's certificate is not trusted: %s; check the CA and the name",
                       X509_verify_cert_error_string(verify));
    return code;
}

int64_t ws_tls_stream_read(struct ws_tls_stream *s, void *data, size_t len, struct err *err)
{
    ERR_clear_error();
    errno = 0;
    int n = SSL_read(s->ssl, data, (int)MIN(len, INT_MAX));
    return n > 0 ? n : verdict(s, n, "TLS", err);
}

int64_t ws_tls_stream_write(struct ws_tls_stream *s, const void *data, size_t len, struct err *err)
{
    ERR_clear_error();
    errno = 0;
    int n = SSL_write(s->ssl, data, (int)MIN(len, INT_MAX));
    return n > 0 ? n : verdict(s, n, "TLS", err);
}
