// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/raw.h"

#include "bench/lib/proc.h"
#include "common/base/buf.h"
#include "common/base/mem.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 64 * 1024, THREADS_MAX = 128 };

struct raw {
    const struct kube_config *config;
    SSL_CTX *tls;
    const struct raw_request *requests;
    int n;
    atomic_int next, refused;
    char *why;
    size_t why_size;
    pthread_barrier_t connected;
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench-groups: raw connection: %s: %s\n", what, why);
    exit(1);
}

static int connect_to(const char *server)
{
    const char *at = strstr(server, "://");
    _cleanup_(free_p) char *host = xstrdup(at ? at + 3 : server);
    char *port = strrchr(host, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (!port)
        die(server, "has no port");
    *port++ = '\0';
    if (getaddrinfo(host, port, &hints, &found) != 0)
        die(server, "has no address");
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0)
        die(server, "cannot be reached");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    freeaddrinfo(found);
    return fd;
}

// One answer at a time, so its end is the end of what has come: a length, or the last chunk.
static bool is_whole(const struct buf *b)
{
    const char *head_end = strstr(buf_str(b), "\r\n\r\n");
    if (!head_end)
        return false;
    const char *length = strcasestr(buf_str(b), "\r\nContent-Length:");
    if (length && length < head_end)
        return b->len >= (size_t)(head_end + 4 - b->data) + strtoul(length + 17, NULL, 10);
    return b->len >= 5 && memcmp(b->data + b->len - 5, "0\r\n\r\n", 5) == 0;
}

static bool send_one(SSL *ssl, const struct raw_request *q, struct buf *b)
{
    const char *body = q->body ? q->body : "";
    buf_reset(b);
    buf_printf(b, "%s %s HTTP/1.1\r\nHost: bench\r\nAccept: application/json\r\nContent-Type: application/json\r\n",
               q->method, q->path);
    buf_printf(b, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    if (SSL_write(ssl, b->data, (int)b->len) <= 0)
        die(q->path, "cannot be written to");
    buf_reset(b);
    do {
        char piece[16384];
        int got = SSL_read(ssl, piece, sizeof piece);
        if (got <= 0 || buf_append(b, piece, (size_t)got) < 0)
            die(q->path, "the answer cannot be read");
    } while (!is_whole(b));
    return strncmp(buf_str(b), "HTTP/1.1 2", 10) == 0;
}

static void *work(void *ctx)
{
    struct raw *r = ctx;
    struct buf b = BUF_INIT(ANSWER_MAX);
    SSL *ssl = SSL_new(r->tls);
    int fd = connect_to(r->config->server);
    SSL_set_fd(ssl, fd);
    if (SSL_connect(ssl) != 1)
        die(r->config->server, "refuses TLS");
    pthread_barrier_wait(&r->connected);
    for (int i; (i = atomic_fetch_add(&r->next, 1)) < r->n;)
        if (!send_one(ssl, &r->requests[i], &b) && atomic_fetch_add(&r->refused, 1) == 0)
            snprintf(r->why, r->why_size, "%s", buf_str(&b));
    SSL_free(ssl);
    close(fd);
    buf_done(&b);
    return NULL;
}

static SSL_CTX *tls_new(const struct kube_config *c)
{
    if (!c->cert_pem || !c->key_pem)
        die(c->source, "the raw floor needs a kubeconfig with a client certificate inside");
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    BIO *cert_bio = BIO_new_mem_buf(c->cert_pem, -1), *key_bio = BIO_new_mem_buf(c->key_pem, -1);
    X509 *cert = PEM_read_bio_X509(cert_bio, NULL, NULL, NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);
    if (!tls || !cert || !key || !SSL_CTX_use_certificate(tls, cert) || !SSL_CTX_use_PrivateKey(tls, key))
        die(c->source, "its client certificate cannot be used");
    X509_free(cert);
    EVP_PKEY_free(key);
    BIO_free(cert_bio);
    BIO_free(key_bio);
    return tls;
}

int raw_send(const struct kube_config *config, const struct raw_request *requests, int n, int threads, double *took_s,
             char *why, size_t size)
{
    struct raw r = {
        .config = config, .tls = tls_new(config), .requests = requests, .n = n, .why = why, .why_size = size};
    pthread_t ids[THREADS_MAX];
    threads = MIN(MIN(threads, n), THREADS_MAX);
    pthread_barrier_init(&r.connected, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, &r) != 0)
            die(config->server, "no more threads");
    pthread_barrier_wait(&r.connected); // connecting is not counted
    int64_t began = proc_now_us();
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    *took_s = (double)(proc_now_us() - began) / 1e6;
    pthread_barrier_destroy(&r.connected);
    SSL_CTX_free(r.tls);
    return r.refused;
}

double raw_post(const struct kube_config *config, const char *path, const char *const *bodies, int n, int threads)
{
    char why[512] = "";
    double took;
    _cleanup_(free_p) struct raw_request *requests = xcalloc((size_t)n, sizeof *requests);
    for (int i = 0; i < n; i++)
        requests[i] = (struct raw_request){"POST", path, bodies[i]};
    if (raw_send(config, requests, n, threads, &took, why, sizeof why))
        die(path, why);
    return took;
}
