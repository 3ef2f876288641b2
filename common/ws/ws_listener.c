// SPDX-License-Identifier: Apache-2.0
// Accepts connections itself and hands the sockets to libwebsockets. The listener of libwebsockets has no upper bound,
// and gives no reason for a failure.
#include "common/ws/ws_listener.h"

#include "common/base/file.h"
#include "common/base/listen_socket.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/ws/rundir.h"
#include "common/ws/ws_preread.h"
#include "common/ws/ws_server_tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ACCEPTS_A_TURN 32 // 1 ms, if each takes the place of another one
#define RETRY_MS 100
// This is a server only. So it does not read the certificate authorities of this machine, a hundred and more, which
// only a client needs.
#define TLS_OPTIONS                                                                  \
    (LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX | \
     LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS)

static void socket_tune(int fd, bool is_unix)
{
    int on = 1;
    if (is_unix)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// Connections that have sent nothing yet make room.
static bool has_room(struct ws_server *server)
{
    return server->counters.connections + ws_preread_count(server->preread) < server->config.max_connections ||
           ws_preread_drop_oldest(server->preread);
}

static void on_acceptable(void *ctx, int events)
{
    struct ws_listener *l = ctx;
    struct err err = ERR_INIT;
    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN && l->fd >= 0; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            if (errno == EAGAIN)
                return;
            loop_poll_set(l->poll, 0, &err); // no descriptors: the socket would stay readable for ever
            loop_timer_arm(l->retry, RETRY_MS);
            return;
        }
        if (!has_room(l->server)) {
            l->server->counters.turned_away++;
            close(fd);
            continue;
        }
        socket_tune(fd, l->unix_path);
        if (l->unix_path)
            ws_preread_adopt(l, fd, false); // everything there is its user's own
        else if (!ws_preread_take(l, fd))
            close(fd);
    }
}

static void on_retry(void *ctx)
{
    struct ws_listener *l = ctx;
    struct err err = ERR_INIT;
    loop_poll_set(l->poll, LOOP_READ, &err);
}

static int cannot(struct err *err, const char *address, const char *why)
{
    return err_set(err, ERR_UNAVAILABLE, "cannot listen on %s: %s", address, why);
}

static int listen_unix(struct ws_listener *l, const char *address, struct err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    const char *path = address + strlen("unix:");
    struct stat st;
    mode_t mask;
    if (!*path || strlen(path) >= sizeof sa.sun_path)
        return err_set(err, ERR_INVALID, "\"%s\": the path of a Unix socket has 1 to %zu characters", address,
                       sizeof sa.sun_path - 1);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
        if (rundir_is_alive(path))
            return cannot(err, address, "another program already does");
        unlink(path); // its owner had no time to remove it
    }
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return cannot(err, address, strerror(errno));
    mask = umask(0177); // for its owner only, from the first moment
    int r = bind(l->fd, (struct sockaddr *)&sa, sizeof sa);
    umask(mask);
    if (r < 0)
        return cannot(err, address, strerror(errno));
    l->unix_path = xstrdup(path);
    if (listen(l->fd, SOMAXCONN) < 0)
        return cannot(err, address, strerror(errno));
    return 0;
}

static int vhost_new(struct ws_listener *l, bool tls, struct err *err)
{
    struct ws_server *server = l->server;
    // Otherwise libwebsockets pings and hangs up by itself, with a timer for each connection, in a list that it walks
    // to set a timer.
    static const lws_retry_bo_t no_watch = {0};
    struct lws_context_creation_info info = {.port = CONTEXT_PORT_NO_LISTEN_SERVER,
                                             .vhost_name = "cadre", // is not copied
                                             .protocols = server->protocols,
                                             .alpn = "http/1.1", // flow control does nothing on HTTP/2
                                             .timeout_secs = 20,
                                             .keepalive_timeout = 5,
                                             .retry_and_idle_policy = &no_watch,
                                             .options = tls ? TLS_OPTIONS : 0,
                                             .user = server};
    server->creating = NULL;
    l->vhost = lws_create_vhost(server->context, &info);
    l->tls = TAKE_PTR(server->creating);
    if (!l->vhost || tls != (l->tls != NULL))
        return err_set(err, ERR_INTERNAL, "libwebsockets could not make a listener");
    return l->tls ? ws_server_tls_set(l->tls, server->cert_pem, server->key_pem, err) : 0;
}

static void stop(struct ws_listener *l)
{
    loop_poll_free(TAKE_PTR(l->poll));
    loop_timer_free(TAKE_PTR(l->retry));
    file_close(&l->fd);
    if (l->unix_path)
        unlink(l->unix_path);
    free(TAKE_PTR(l->unix_path));
}

void ws_listener_free(struct ws_listener *l) // its vhost lives as long as the context
{
    stop(l);
    list_remove(&l->link);
    free(l);
}

int ws_listener_new(struct ws_server *server, const char *address, bool tls, struct err *err)
{
    if (tls && !server->cert_pem)
        return err_set(err, ERR_INVALID, "cannot listen on %s with TLS: there is no certificate", address);
    struct ws_listener *l = xcalloc(1, sizeof *l);
    l->server = server;
    l->fd = -1;
    list_append(&server->listeners, &l->link);
    int port = 0, r;
    if (str_starts(address, "unix:"))
        r = listen_unix(l, address, err);
    else if ((r = listen_socket_open(address, &port, err)) >= 0)
        l->fd = r;
    if (r >= 0)
        r = vhost_new(l, tls, err);
    if (r == 0 && !(l->poll = loop_poll_read(server->loop, l->fd, on_acceptable, l, err)))
        r = err_wrap(err, "cannot listen on %s", address);
    if (r < 0) {
        ws_listener_free(l);
        return r;
    }
    l->retry = loop_timer_new(server->loop, on_retry, l);
    return port;
}

void ws_listeners_stop(struct ws_server *server)
{
    LIST_FOREACH(i, &server->listeners)
        stop(CONTAINER_OF(i, struct ws_listener, link));
    ws_preread_clear(server->preread);
    LIST_FOREACH(i, &server->connections) {
        const struct ws_connection *c = CONTAINER_OF(i, struct ws_connection, link);
        if (!c->session && !(c->request && c->request->handed_over))
            shutdown(c->fd, SHUT_RDWR);
    }
}
