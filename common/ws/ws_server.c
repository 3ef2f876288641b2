// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_server.h"

#include "common/base/mem.h"
#include "common/ws/ws_connection.h"
#include "common/ws/ws_listener.h"
#include "common/ws/ws_preread.h"
#include "common/ws/ws_reader.h"
#include "common/ws/ws_server_state.h"
#include "common/ws/ws_server_tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define READ_SIZE_MIN 16384u // below, connections stop with TLS and flow control
// A session of libwebsockets gets bytes that came with its request in pieces of this size, and no others.
#define LWS_READ_SIZE 1024u
#define SERV_BUF_MIN 16448u // one TLS record
#define HEADERS_MAX 20480u  // bytes of a request's headers together
#define OTHER_FILES 1024u   // descriptors for everything but connections
#define WOKEN_MAX 32u       // when it has all headers of a request, it reports them piece by piece
#define AGAIN_MS 50
#define ENDS_A_TURN 16u // of connections

static char last_error[200]; // of libwebsockets, which logs an error instead of returning it

static void keep_error(int level, const char *line)
{
    (void)level;
    size_t len = strcspn(line, "\n");
    len = MIN(len, sizeof last_error - 1);
    memcpy(last_error, line, len);
    last_error[len] = '\0';
}

static int end_connection(struct ws_connection *c)
{
    if (c->session)
        ws_session_end(c->session);
    if (c->request)
        ws_request_end(c->request);
    return 0;
}

static int connection_event(struct lws *wsi, struct ws_connection *c, enum lws_callback_reasons reason, void *in,
                            size_t len)
{
    c->wsi = wsi;
    switch (reason) {
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return ws_request_upgrade(c, in);
    case LWS_CALLBACK_HTTP:
        return ws_request_begin(c);
    case LWS_CALLBACK_HTTP_BODY:
        return ws_request_piece(c, in, len);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return ws_request_complete(c);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return ws_request_writable(c);
    case LWS_CALLBACK_ESTABLISHED:
        return c->session ? ws_session_established(c->session) : -1;
    case LWS_CALLBACK_RECEIVE:
        if (c->session)
            ws_session_glued(c->session);
        return c->session ? 0 : -1;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return c->session ? ws_session_writable(c->session) : -1;
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        return c->session ? ws_session_peer_closes(c->session, in, len) : 0;
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_CLOSED_HTTP:
        return end_connection(c);
    case LWS_CALLBACK_WSI_DESTROY:
        end_connection(c);
        lws_set_opaque_user_data(wsi, NULL);
        ws_connection_known(c);
        ws_preread_forget(c);
        list_remove(&c->link);
        list_remove(&c->ending);
        c->server->counters.connections--;
        c->server->calm = 0; // the connection may be one of those that were counted
        free(c);
        return 0;
    default:
        return 0;
    }
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    if (reason == LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS) { // the wsi is not a real one
        struct ws_server *server = lws_get_vhost_user(in);
        server->creating = user;
        ws_server_tls_prepare(user);
        ws_preread_watch(server, user);
        return 0;
    }
    if (reason == LWS_CALLBACK_WSI_CREATE) {
        struct ws_server *server = lws_get_vhost_user(lws_get_vhost(wsi));
        if (server)
            server->adopted++;
        return 0;
    }
    bool real = reason <= LWS_CALLBACK_CLOSED_HTTP ||
                (reason != LWS_CALLBACK_PROTOCOL_INIT && reason != LWS_CALLBACK_PROTOCOL_DESTROY);
    struct ws_connection *c = real && wsi ? connection_of(wsi) : NULL;
    if (!c)
        return 0;
    if (reason != LWS_CALLBACK_HTTP_BODY_COMPLETION) // it reports this again and again
        c->server->woken = 0;
    return connection_event(wsi, c, reason, in, len);
}

// The owner of a session need not wait until libwebsockets has closed its connection.
static void end_sessions(struct ws_server *server)
{
    struct ws_connection *c;
    for (unsigned i = 0; i < ENDS_A_TURN && (c = ws_connections_hang_up_next(server)); i++)
        if (c->session)
            ws_session_end(c->session);
}

// A safeguard: the libuv binding of libwebsockets may go to sleep over data that it has read already. If libwebsockets
// cannot use this data, such as bytes after a body, it is woken only a few times a second, because the loop must rest.
static void before_waiting(void *ctx)
{
    struct ws_server *server = ctx;
    ws_readers_begin(server);
    ws_preread_begin(server);
    end_sessions(server);
    if (lws_service_adjust_timeout(server->context, 1, 0))
        return;
    if (server->woken++ < WOKEN_MAX)
        lws_cancel_service(server->context);
    else if (!loop_timer_armed(server->again))
        loop_timer_arm(server->again, AGAIN_MS);
}

static void on_again(void *ctx)
{
    struct ws_server *server = ctx;
    lws_cancel_service(server->context);
}

static void sweep(struct ws_connection *c)
{
    struct ws_server *server = c->server;
    bool idle = c->is_unix && (!c->session || ws_session_idle(c->session)) && !c->request;
    server->calm = idle ? server->calm + 1 : 0;
    if (idle)
        return;
    if (c->session)
        ws_session_sweep(c->session);
    else if (c->request)
        ws_request_sweep(c->request);
}

// Pings sessions that are silent. The connection that was swept longest ago is the first of the list. Its peer has all
// the time for its answer, however often the timer's interval changes.
static void on_sweep(void *ctx)
{
    struct ws_server *server = ctx;
    size_t parts = ws_connections_sweep_parts(server), n = parts ? server->counters.connections / parts + 1 : 0;
    int64_t now_ms = loop_now_ms(server->loop), until_ms = now_ms - server->config.ping_ms * 9 / 10;
    ws_sessions_show_life(server);
    for (; n && !list_empty(&server->connections); n--) {
        struct ws_connection *c = CONTAINER_OF(server->connections.next, struct ws_connection, link);
        if (c->swept_ms > until_ms)
            break;
        c->swept_ms = now_ms;
        list_remove(&c->link);
        list_append(&server->connections, &c->link);
        sweep(c);
    }
    ws_connections_sweep_next(server);
}

#define DEFAULT(field, value) (config->field = config->field ? config->field : (value))

static void set_defaults(struct ws_server_config *config)
{
    DEFAULT(max_connections, 16384);
    DEFAULT(max_message, (size_t)64 << 20);
    DEFAULT(max_queue, (size_t)256 << 20);
    DEFAULT(max_session, (size_t)512 << 20);
    DEFAULT(max_total, (size_t)2 << 30);
    DEFAULT(max_body, (size_t)1 << 20);
    DEFAULT(max_bodies, (size_t)64 << 20);
    DEFAULT(read_size, WS_WAVE);
    config->read_size = MAX(config->read_size, READ_SIZE_MIN);
    DEFAULT(first_line_ms, 5000);
    DEFAULT(ping_ms, 20000);
}

// libwebsockets sizes its tables by this limit, and container runtimes often set it to a billion. If the limit cannot
// be high enough for all connections, there are fewer of them: the rest of this process needs descriptors, too.
static void set_files(struct ws_server_config *config)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = MIN((rlim_t)config->max_connections + OTHER_FILES, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    rlim_t others = MIN((rlim_t)OTHER_FILES, limit.rlim_cur / 2);
    config->max_connections = (unsigned)MIN((rlim_t)config->max_connections, limit.rlim_cur - others);
}

// The first protocol is for HTTP; no client can offer its name.
static struct lws_protocols *protocols_new(const struct ws_server_config *config)
{
    size_t n = 0;
    while (config->subprotocols[n])
        n++;
    struct lws_protocols *p = xcalloc(n + 2, sizeof *p);
    for (size_t i = 0; i <= n; i++)
        p[i] = (struct lws_protocols){.name = i ? config->subprotocols[i - 1] : "(http)",
                                      .callback = on_event,
                                      .rx_buffer_size = LWS_READ_SIZE,
                                      .tx_packet_size = RECORD_MESSAGE + LWS_PRE};
    return p;
}

// A longer header is cut, so the request can be answered. If all headers together are longer than HEADERS_MAX,
// libwebsockets hangs up.
static const struct lws_token_limits *header_limits(void)
{
    static struct lws_token_limits limits;
    for (size_t i = 0; i < WSI_TOKEN_COUNT; i++)
        limits.token_limit[i] = WS_HEADER_MAX;
    return &limits;
}

static int context_new(struct ws_server *server, struct err *err)
{
    void *loops[] = {loop_uv(server->loop)};
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .gid = -1,
        .uid = -1,
        .options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_VALIDATE_UTF8 |
                   LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME,
        .foreign_loops = loops,
        .pt_serv_buf_size = MAX((unsigned)server->config.read_size, SERV_BUF_MIN) + 64,
        .max_http_header_data2 = HEADERS_MAX,
        .token_limits = header_limits(),
        .timeout_secs = 20,
        .pcontext = &server->context,
    };
    last_error[0] = '\0';
    lws_set_log_level(LLL_ERR, keep_error);
    server->context = lws_create_context(&info);
    lws_set_log_level(0, NULL);
    if (!server->context)
        return err_set(err, ERR_INTERNAL,
                       "libwebsockets cannot start%s%s; is its libuv plugin (libwebsockets-evlib-uv) installed?",
                       last_error[0] ? ": " : "", last_error);
    return 0;
}

struct ws_server *ws_server_new(struct loop *loop, const struct ws_server_config *config, struct err *err)
{
    struct ws_server *server = xcalloc(1, sizeof *server);
    server->loop = loop;
    server->config = *config;
    set_defaults(&server->config);
    list_init(&server->listeners);
    list_init(&server->connections);
    list_init(&server->paused);
    list_init(&server->without_request);
    list_init(&server->ending);
    server->quota = quota_new(server->config.max_total, config->quota);
    server->bodies = quota_new(server->config.max_bodies, server->quota);
    server->protocols = protocols_new(&server->config);
    server->scratch = xmalloc(LWS_PRE + RECORD_MESSAGE + 64);
    server->read_buf = xmalloc(server->config.read_size);
    set_files(&server->config);
    if ((config->cert_pem && ws_server_certificate(server, config->cert_pem, config->key_pem, err) < 0) ||
        context_new(server, err) < 0 || ws_readers_new(server, err) < 0 || ws_preread_new(server, err) < 0) {
        ws_server_free(server);
        return NULL;
    }
    server->hook = loop_hook_new(loop, before_waiting, server);
    loop_hook_look(server->hook, ws_readers_look);
    server->sweep = loop_timer_new(loop, on_sweep, server);
    server->again = loop_timer_new(loop, on_again, server);
    return server;
}

void ws_server_free(struct ws_server *server)
{
    if (!server)
        return;
    server->freeing = true;
    ws_preread_free(server);
    LIST_FOREACH(l, &server->listeners)
        ws_listener_free(CONTAINER_OF(l, struct ws_listener, link));
    loop_hook_free(server->hook);
    loop_timer_free(server->sweep);
    loop_timer_free(server->again);
    // The first call closes the connections, and libuv reports this a turn later. Then libwebsockets closes its own
    // handles, which takes one turn more. Only then the plugin may be unloaded, because libuv calls into it.
    lws_context_destroy(server->context);
    for (int i = 0; i < 3 && server->context; i++)
        loop_run_once(server->loop, 0);
    lws_context_destroy(server->context);
    ws_readers_free(server);
    quota_unref(server->bodies);
    quota_unref(server->quota);
    free(server->protocols);
    free(server->scratch);
    free(server->read_buf);
    free(server->cert_pem);
    free(server->key_pem);
    free(server);
}

int ws_server_listen(struct ws_server *server, const char *address, bool tls, struct err *err)
{
    return ws_listener_new(server, address, tls, err);
}

void ws_server_stop_listening(struct ws_server *server)
{
    ws_listeners_stop(server);
}

int ws_server_certificate(struct ws_server *server, const char *cert_pem, const char *key_pem, struct err *err)
{
    int r = ws_server_tls_check(cert_pem, key_pem, err);
    if (r < 0)
        return r;
    free(server->cert_pem);
    free(server->key_pem);
    server->cert_pem = xstrdup(cert_pem);
    server->key_pem = xstrdup(key_pem);
    LIST_FOREACH(i, &server->listeners) {
        const struct ws_listener *l = CONTAINER_OF(i, struct ws_listener, link);
        if (l->tls && r == 0)
            r = ws_server_tls_set(l->tls, cert_pem, key_pem, err);
    }
    return r;
}

const struct ws_server_counters *ws_server_counters(const struct ws_server *server)
{
    return &server->counters;
}
