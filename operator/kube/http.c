// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/http.h"

#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "operator/kube/http_pool.h"

#include <curl/curl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    HTTP_CONNECT_MS = 10 * 1000,
    HTTP_KEEP_S = 60, // idle connections
    HTTP_TRIM_MS = 30 * 1000,
    HTTP_KEEPALIVE_IDLE_S = 30, // the host of the server may vanish silently
    HTTP_KEEPALIVE_EVERY_S = 10,
    HTTP_UNACKED_MS = 30 * 1000,
    HTTP_MAX_URL = 80 * 1024,
    HTTP_MAX_ERROR_BODY = 64 * 1024,
    HTTP_UPLOAD_BUFFER = 16 * 1024, // the minimum of libcurl; most bodies are smaller
    HTTP_KEEP_BODY = 32 * 1024,     // memory that an exchange keeps for its next answer
};

struct http {
    struct loop *loop;
    const struct kube_config *config;
    const char *user_agent;
    size_t max_body;
    char *base; // URL in front of a path
    struct curl_slist *connect_to;
    CURLSH *share;                    // TLS sessions
    char *authorization;              // header line, NULL = none
    struct http_pool shorts, streams; // two pools, so that idle connections can be dropped while streams continue
    struct list active, idle;         // exchanges
    int idle_count;
    int peak; // most exchanges in `shorts` at once since the last trim
    struct loop_timer *trim;
    int64_t distrust_ms; // mono; time of the last http_distrust()
    bool distrusts;
    struct buf url; // scratch
};

struct http_exchange {
    struct list link;
    struct http *http;
    struct http_pool *pool;
    CURL *easy;
    struct curl_slist *headers;
    const struct http_ops *ops;
    void *ctx;
    struct buf body;
    char error[CURL_ERROR_SIZE];
};

// --- headers

static struct curl_slist *slist_add(struct curl_slist *list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(list, line);
    if (!longer)
        abort(); // out of memory, as everywhere in base/mem
    return longer;
}

static struct curl_slist *headers_of(const struct http *h, const char *content_type)
{
    // All answers are JSON, but the JWKS of a cluster has its own type.
    struct curl_slist *list = slist_add(NULL, "Accept: application/json, */*");
    list = slist_add(list, "Expect:"); // no round trip before a long body
    if (content_type) {
        _cleanup_(free_p) char *line = xasprintf("Content-Type: %s", content_type);
        list = slist_add(list, line);
    }
    return h->authorization ? slist_add(list, h->authorization) : list;
}

void http_set_token(struct http *h, const char *token)
{
    if (h->authorization)
        explicit_bzero(h->authorization, strlen(h->authorization));
    free(h->authorization);
    h->authorization = token ? xasprintf("Authorization: Bearer %s", token) : NULL;
}

// --- exchanges

static size_t on_data(char *bytes, size_t size, size_t count, void *ctx)
{
    struct http_exchange *x = ctx;
    size_t n = size * count;
    long status = 0;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    bool good = status >= 200 && status < 300;
    if (good && x->ops->data)
        return x->ops->data(x->ctx, bytes, n) ? n : 0;
    if (!good && n > HTTP_MAX_ERROR_BODY - MIN(x->body.len, HTTP_MAX_ERROR_BODY))
        return n; // the beginning of an error page is enough
    return buf_append(&x->body, bytes, n) == 0 ? n : 0;
}

static int on_socket_made(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    (void)ctx, (void)purpose;
    unsigned int ms = HTTP_UNACKED_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    return CURL_SOCKOPT_OK;
}

static void set_blob(CURL *e, CURLoption option, const char *pem)
{
    struct curl_blob blob = {(void *)pem, strlen(pem), CURL_BLOB_NOCOPY};
    curl_easy_setopt(e, option, &blob);
}

static void set_tls(CURL *e, const struct kube_config *c)
{
    curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (c->insecure) {
        curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (c->ca_pem)
        set_blob(e, CURLOPT_CAINFO_BLOB, c->ca_pem);
    else if (c->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, c->ca_file);
    if (c->ca_pem || c->ca_file)
        curl_easy_setopt(e, CURLOPT_CAPATH, NULL); // only this authority, not the system's authorities
    if (c->cert_pem)
        set_blob(e, CURLOPT_SSLCERT_BLOB, c->cert_pem);
    else if (c->cert_file)
        curl_easy_setopt(e, CURLOPT_SSLCERT, c->cert_file);
    if (c->key_pem)
        set_blob(e, CURLOPT_SSLKEY_BLOB, c->key_pem);
    else if (c->key_file)
        curl_easy_setopt(e, CURLOPT_SSLKEY, c->key_file);
}

// Options that all exchanges share are set once, for each new handle.
static struct http_exchange *exchange_new(struct http *h)
{
    struct http_exchange *x = xcalloc(1, sizeof *x);
    CURL *e = x->easy = curl_easy_init();
    if (!e)
        abort();
    x->http = h;
    list_init(&x->link);
    x->body = BUF_INIT(h->max_body);
    curl_easy_setopt(e, CURLOPT_PRIVATE, x);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->error);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(e, CURLOPT_SHARE, h->share);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(e, CURLOPT_USERAGENT, h->user_agent);
    curl_easy_setopt(e, CURLOPT_PROXY, h->config->proxy_url ? h->config->proxy_url : "");
    curl_easy_setopt(e, CURLOPT_NOPROXY, ""); // ignores the exceptions of the environment, too
    curl_easy_setopt(e, CURLOPT_CONNECT_TO, h->connect_to);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_MS);
    curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, (long)HTTP_UPLOAD_BUFFER);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, (long)HTTP_KEEPALIVE_IDLE_S);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, (long)HTTP_KEEPALIVE_EVERY_S);
    curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    set_tls(e, h->config);
    return x;
}

static void exchange_free(struct http_exchange *x)
{
    curl_easy_cleanup(x->easy);
    buf_done(&x->body);
    free(x);
}

static struct http_exchange *exchange_take(struct http *h)
{
    struct list *l = h->idle.prev; // the one that was used last, so that the others grow old and are freed
    if (l == &h->idle)
        return exchange_new(h);
    list_remove(l);
    h->idle_count--;
    return CONTAINER_OF(l, struct http_exchange, link);
}

// May be called twice.
static void exchange_detach(struct http_exchange *x)
{
    if (x->pool)
        http_pool_remove(TAKE_PTR(x->pool), x->easy);
    curl_slist_free_all(TAKE_PTR(x->headers));
    list_remove(&x->link);
}

static void exchange_release(struct http_exchange *x)
{
    struct http *h = x->http;
    list_append(&h->idle, &x->link);
    h->idle_count++;
    if (!loop_timer_armed(h->trim))
        loop_timer_arm(h->trim, HTTP_TRIM_MS);
}

static void trim_idle(struct http *h, int keep)
{
    while (h->idle_count > keep) {
        exchange_free(CONTAINER_OF(list_pop(&h->idle), struct http_exchange, link));
        h->idle_count--;
    }
}

static void on_trim(void *ctx)
{
    struct http *h = ctx;
    trim_idle(h, h->peak);
    if (h->peak == 0) { // no exchange since the last time: drop the connections, and stop this timer
        http_pool_drop(&h->shorts);
        // A connection and its buffers take about 100 KB in small pieces, which malloc would keep. malloc_trim() looks
        // at all free pieces. This takes 30 ms for a million pieces, so it must not happen while there is work.
        (void)malloc_trim(0);
    } else {
        loop_timer_arm(h->trim, HTTP_TRIM_MS);
    }
    h->peak = h->shorts.active;
}

void http_distrust(struct http *h)
{
    h->distrust_ms = loop_now_ms(h->loop);
    h->distrusts = true;
}

// Returns how long a connection may have been idle to be used again.
static long keep_s(struct http *h)
{
    int64_t since_s = (loop_now_ms(h->loop) - h->distrust_ms) / 1000;
    if (!h->distrusts || since_s >= HTTP_KEEP_S)
        return HTTP_KEEP_S;
    return (long)MAX(since_s, 1);
}

struct http_exchange *http_start(struct http *h, const struct http_message *m, bool own_connection,
                                 const struct http_ops *ops, void *ctx)
{
    struct http_exchange *x = exchange_take(h);
    x->ops = ops;
    x->ctx = ctx;
    x->error[0] = '\0';
    x->pool = own_connection ? &h->streams : &h->shorts;
    x->headers = headers_of(h, m->content_type);
    if (x->body.size > HTTP_KEEP_BODY)
        buf_done(&x->body);
    buf_reset(&x->body);
    buf_reset(&h->url);
    (void)buf_puts(&h->url, h->base);
    (void)buf_puts(&h->url, m->path);

    CURL *e = x->easy;
    curl_easy_setopt(e, CURLOPT_URL, buf_str(&h->url));
    curl_easy_setopt(e, CURLOPT_HTTPHEADER, x->headers);
    curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, own_connection ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_FORBID_REUSE, own_connection ? 1L : 0L);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, keep_s(h));
    if (m->body) {
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)m->body_len);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, m->body); // not copied
        curl_easy_setopt(e, CURLOPT_POST, 1L);
    } else {
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, NULL);
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, m->method);
    list_append(&h->active, &x->link);
    http_pool_add(x->pool, e);
    h->peak = MAX(h->peak, h->shorts.active);
    return x;
}

void http_abort(struct http_exchange *x)
{
    exchange_detach(x);
    exchange_release(x);
}

// --- what went wrong

static int describe_connect(const struct http_exchange *x, struct err *err)
{
    long number = 0;
    curl_easy_getinfo(x->easy, CURLINFO_OS_ERRNO, &number);
    char reason[CURL_ERROR_SIZE];
    snprintf(reason, sizeof reason, "%s", number ? strerror((int)number) : x->error);
    if (reason[0] >= 'A' && reason[0] <= 'Z')
        reason[0] = (char)(reason[0] + ('a' - 'A'));
    return err_set(err, ERR_IO, "cannot connect to %s: %s; is the API server up?", x->http->config->server, reason);
}

static int describe_failure(const struct http_exchange *x, CURLcode code, struct err *err)
{
    const char *server = x->http->config->server;
    const char *why = x->error[0] ? x->error : curl_easy_strerror(code);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return err_set(err, ERR_IO, "cannot find the address of %s: %s; is its name right?", server, why);
    case CURLE_COULDNT_CONNECT:
        return describe_connect(x, err);
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(err, ERR_TIMEOUT, "no connection to %s within %d s; is the API server up?", server,
                       HTTP_CONNECT_MS / 1000);
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(err, ERR_IO,
                       "the certificate of %s cannot be trusted: %s; does certificate-authority belong to "
                       "this cluster?",
                       server, why);
    case CURLE_SSL_CONNECT_ERROR:
        if (strstr(why, "wrong version number"))
            return err_set(err, ERR_IO, "%s does not speak TLS; is it an http:// address?", server);
        return err_set(err, ERR_IO, "TLS with %s failed: %s", server, why);
    case CURLE_WRITE_ERROR:
        if (x->body.over)
            return err_set(err, ERR_LIMIT, "the answer is longer than %zu bytes", x->body.cap);
        return err_set(err, ERR_CANCELED, "canceled");
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
        return err_set(err, ERR_IO, "the connection to %s was lost: %s", server, why);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return err_set(err, ERR_PROTO, "the server at %s is not an API server: %s", server, why);
    default:
        return err_set(err, ERR_IO, "the request to %s failed: %s", server, why);
    }
}

static void exchange_finish(struct http_exchange *x, CURLcode code)
{
    struct err err = ERR_INIT;
    long status = 0;
    curl_off_t micros = 0, retry_after = 0;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(x->easy, CURLINFO_TOTAL_TIME_T, &micros);
    curl_easy_getinfo(x->easy, CURLINFO_RETRY_AFTER, &retry_after);
    if (code != CURLE_OK)
        describe_failure(x, code, &err);
    struct http_result result = {
        .status = (int)status,
        .body = buf_str(&x->body),
        .len = x->body.len,
        .retry_after_ms = retry_after > 0 && retry_after < INT32_MAX ? (int64_t)retry_after * 1000 : 0,
        .micros = micros,
        .err = &err,
    };
    exchange_detach(x);
    x->ops->done(x->ctx, &result);
    exchange_release(x); // not earlier, because the callback reads its body
}

static void on_done(struct http_pool *p, CURL *easy, CURLcode code)
{
    (void)p;
    struct http_exchange *x = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &x) == CURLE_OK)
        exchange_finish(x, code);
}

// Removes all exchanges from libcurl before the first callback, because a callback may start new ones.
static void on_broken(struct http_pool *p)
{
    struct http *h = p->ctx;
    struct list failed = LIST_INIT(failed);
    LIST_FOREACH(l, &h->active) {
        struct http_exchange *x = CONTAINER_OF(l, struct http_exchange, link);
        if (x->pool == p) {
            exchange_detach(x);
            list_append(&failed, l);
        }
    }
    http_pool_drop(p);
    while (!list_empty(&failed)) // a callback may abort others of them
        exchange_finish(CONTAINER_OF(failed.next, struct http_exchange, link), CURLE_RECV_ERROR);
}

// --- life

// TLS may need another name than the address has. Then the URL has that name, and libcurl connects to the real address.
static int set_base(struct http *h, struct err *err)
{
    const struct kube_config *c = h->config;
    if (!c->tls_server_name) {
        h->base = xstrdup(c->server);
        return 0;
    }
    CURLU *u = curl_url();
    char *host = NULL, *port = NULL, *url = NULL;
    bool ok = u && curl_url_set(u, CURLUPART_URL, c->server, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
              curl_url_set(u, CURLUPART_HOST, c->tls_server_name, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_URL, &url, 0) == CURLUE_OK;
    if (ok) {
        size_t n = strlen(url);
        h->base = xstrdup(url);
        if (n && h->base[n - 1] == '/')
            h->base[n - 1] = '\0';
        char *line = xasprintf("::%s:%s", host, port);
        h->connect_to = slist_add(NULL, line);
        free(line);
    }
    curl_free(host);
    curl_free(port);
    curl_free(url);
    curl_url_cleanup(u);
    return ok ? 0
              : err_set(err, ERR_INVALID, "%s: server %s or tls-server-name %s is not a valid name", c->source,
                        c->server, c->tls_server_name);
}

int http_new(struct loop *loop, const struct kube_config *config, const char *user_agent, size_t max_body,
             struct http **ret, struct err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_INTERNAL, "libcurl cannot be initialised");
    struct http *h = xcalloc(1, sizeof *h);
    h->loop = loop;
    h->config = config;
    h->user_agent = user_agent;
    h->max_body = max_body;
    list_init(&h->active);
    list_init(&h->idle);
    h->url = BUF_INIT(HTTP_MAX_URL);
    h->trim = loop_timer_new(loop, on_trim, h);
    h->share = curl_share_init();
    if (!h->share)
        abort();
    curl_share_setopt(h->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    h->shorts = h->streams = (struct http_pool){.done = on_done, .broken = on_broken, .ctx = h};
    http_pool_init(&h->shorts, loop);
    http_pool_init(&h->streams, loop);
    int r = set_base(h, err);
    if (r < 0)
        http_free(h);
    else
        *ret = h;
    return r;
}

void http_free(struct http *h)
{
    if (!h)
        return;
    trim_idle(h, 0);
    http_pool_done(&h->shorts);
    http_pool_done(&h->streams);
    curl_share_cleanup(h->share);
    curl_slist_free_all(h->connect_to);
    http_set_token(h, NULL);
    loop_timer_free(h->trim);
    buf_done(&h->url);
    free(h->base);
    free(h);
    curl_global_cleanup();
}
