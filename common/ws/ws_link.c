// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_link.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/ws/memory.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_ADDRESSES 8

enum phase { PHASE_LOOKUP, PHASE_CONNECT, PHASE_TLS, PHASE_UP, PHASE_FAILED };

struct address {
    struct sockaddr_storage sa;
    socklen_t len;
};

struct ws_link {
    struct loop *loop;
    struct ws_link_config config; // its strings are owned
    char *host, *port;            // NULL for a Unix socket
    char *host_header;
    enum phase phase;
    struct loop_resolve *resolve;
    struct address addresses[MAX_ADDRESSES];
    size_t n_addresses, next;
    int fd;
    struct loop_poll *poll;
    struct ws_tls_stream *tls;
    struct loop_timer *later; // fails from the loop
    struct err err;
    int wanted;
    bool read_waits_write; // TLS: reading goes on when the socket is writable
};

static void on_events(void *ctx, int events);

const char *ws_link_host(const struct ws_link *l)
{
    return l->host_header;
}

const char *ws_link_phase(const struct ws_link *l)
{
    static const char *const names[] = {"looking up the name", "connecting", "TLS", "connected", "failed"};
    return names[l->phase];
}

static bool is_loopback(const struct sockaddr_storage *sa)
{
    if (sa->ss_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24) == 127;
    return sa->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

bool ws_link_trusted(const struct ws_link *l)
{
    const struct sockaddr_storage *sa = &l->addresses[l->next - 1].sa;
    return l->tls || sa->ss_family == AF_UNIX || is_loopback(sa);
}

static void drop_socket(struct ws_link *l)
{
    ws_tls_stream_free(TAKE_PTR(l->tls));
    loop_poll_free(TAKE_PTR(l->poll));
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

static void fail(struct ws_link *l)
{
    drop_socket(l);
    l->phase = PHASE_FAILED;
    loop_timer_arm(l->later, 0);
}

static void set_poll(struct ws_link *l)
{
    struct err err = ERR_INIT;
    int events = l->wanted;
    if (l->phase == PHASE_CONNECT || (l->phase == PHASE_TLS && ws_tls_stream_wants_write(l->tls)))
        events = LOOP_WRITE;
    else if (l->phase == PHASE_TLS)
        events = LOOP_READ;
    else if (l->read_waits_write && (events & LOOP_READ))
        events |= LOOP_WRITE;
    loop_poll_set(l->poll, events, &err); // an error shows in the next read or write
}

static int socket_new(const struct address *a)
{
    int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd >= 0 && a->sa.ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void cannot_connect(struct ws_link *l, int error)
{
    bool nobody = str_starts(l->config.address, "unix:") && (error == ENOENT || error == ECONNREFUSED);
    err_set(&l->err, ERR_UNAVAILABLE, "cannot connect to %s: %s%s", l->config.address, strerror(error),
            nobody ? ": nothing listens there, it has not begun or has ended" : "");
}

// Begins with the next address; false if that is impossible at once.
static bool connect_begin(struct ws_link *l)
{
    const struct address *a = &l->addresses[l->next++];
    l->fd = socket_new(a);
    if (l->fd < 0 || (connect(l->fd, (const struct sockaddr *)&a->sa, a->len) < 0 && errno != EINPROGRESS) ||
        !(l->poll = loop_poll_new(l->loop, l->fd, on_events, l))) {
        cannot_connect(l, errno);
        drop_socket(l);
        return false;
    }
    l->phase = PHASE_CONNECT;
    set_poll(l);
    return true;
}

static void connect_next(struct ws_link *l)
{
    while (l->next < l->n_addresses)
        if (connect_begin(l))
            return;
    fail(l);
}

static void on_resolved(void *ctx, const struct addrinfo *found, const struct err *err)
{
    struct ws_link *l = ctx;
    l->resolve = NULL;
    l->err = *err;
    for (; found && l->n_addresses < MAX_ADDRESSES; found = found->ai_next) {
        struct address *a = &l->addresses[l->n_addresses++];
        memcpy(&a->sa, found->ai_addr, found->ai_addrlen);
        a->len = found->ai_addrlen;
    }
    connect_next(l);
}

static void up(struct ws_link *l)
{
    l->phase = PHASE_UP;
    l->wanted = LOOP_READ;
    set_poll(l);
    l->config.up(l->config.ctx);
}

static void tls_next(struct ws_link *l)
{
    int done = ws_tls_stream_handshake(l->tls, &l->err);
    if (done < 0) {
        err_wrap(&l->err, "%s", l->config.address);
        fail(l);
    } else if (done == 0) {
        set_poll(l);
    } else {
        up(l);
    }
}

static void connected(struct ws_link *l)
{
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) {
        cannot_connect(l, error);
        drop_socket(l);
        connect_next(l);
        return;
    }
    if (!l->config.tls) {
        up(l);
        return;
    }
    const char *name = l->config.server_name ? l->config.server_name : l->host ? l->host : "localhost";
    l->phase = PHASE_TLS;
    l->tls = ws_tls_stream_new(l->config.tls, l->fd, name, &l->err);
    if (l->tls)
        tls_next(l);
    else
        fail(l);
}

static void on_events(void *ctx, int events)
{
    struct ws_link *l = ctx;
    if (l->phase == PHASE_CONNECT) {
        connected(l);
    } else if (l->phase == PHASE_TLS) {
        tls_next(l);
    } else {
        if (l->read_waits_write && (events & LOOP_WRITE))
            events |= LOOP_READ;
        l->config.ready(l->config.ctx, events);
    }
}

pid_t ws_link_peer(const struct ws_link *l)
{
    return memory_peer(l->fd);
}

bool ws_link_drained(const struct ws_link *l)
{
    return !l->tls || ws_tls_stream_drained(l->tls);
}

bool ws_link_plain(const struct ws_link *l)
{
    return !l->tls;
}

int64_t ws_link_read(struct ws_link *l, const struct iovec *into, unsigned n_into, struct err *err)
{
    int64_t n;
    if (l->tls) {
        n = ws_tls_stream_read(l->tls, into->iov_base, into->iov_len, err);
        bool waits = n == 0 && ws_tls_stream_wants_write(l->tls);
        if (waits != l->read_waits_write) {
            l->read_waits_write = waits;
            set_poll(l);
        }
        return n;
    }
    n = recvmsg(l->fd, &(struct msghdr){.msg_iov = (struct iovec *)into, .msg_iovlen = n_into}, 0);
    if (n > 0)
        return n;
    if (n == 0)
        return err_set(err, ERR_GONE, "the peer ended the connection");
    return errno == EAGAIN || errno == EINTR ? 0 : err_set(err, ERR_IO, "cannot read: %s", strerror(errno));
}

int64_t ws_link_write(struct ws_link *l, const struct iovec *pieces, unsigned n_pieces, struct err *err)
{
    if (l->tls)
        return ws_tls_stream_write(l->tls, pieces->iov_base, pieces->iov_len, err);
    ssize_t n =
        sendmsg(l->fd, &(struct msghdr){.msg_iov = (struct iovec *)pieces, .msg_iovlen = n_pieces}, MSG_NOSIGNAL);
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EINTR ? 0 : err_set(err, ERR_IO, "cannot write: %s", strerror(errno));
}

void ws_link_want(struct ws_link *l, int events)
{
    if (l->phase != PHASE_UP || events == l->wanted)
        return;
    l->wanted = events;
    set_poll(l);
}

static int set_unix(struct ws_link *l, const char *path, struct err *err)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof sa.sun_path)
        return err_set(err, ERR_INVALID, "\"%s\": the path of a Unix socket has 1 to %zu characters", path,
                       sizeof sa.sun_path - 1);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    memcpy(&l->addresses[0].sa, &sa, sizeof sa);
    l->addresses[0].len = sizeof sa;
    l->n_addresses = 1;
    l->host_header = xstrdup("localhost");
    return 0;
}

static int set_host_port(struct ws_link *l, const char *address, struct err *err)
{
    const char *colon = strrchr(address, ':');
    int64_t port;
    bool bracket = address[0] == '[' && colon && colon[-1] == ']';
    size_t host_len = colon ? (size_t)(colon - address) : 0;
    if (!host_len || !str_to_i64(colon + 1, &port) || port < 1 || port > 65535 ||
        (!bracket && memchr(address, ':', host_len)))
        return err_set(err, ERR_INVALID, "\"%s\" is no address; there are host:port, [v6]:port and unix:/path",
                       address);
    l->host = bracket ? strndup(address + 1, host_len - 2) : strndup(address, host_len);
    l->port = xstrdup(colon + 1);
    l->host_header = xstrdup(address);
    if (!l->host)
        abort();
    return 0;
}

// A failure, or the beginning for a Unix socket.
static void run_later(void *ctx)
{
    struct ws_link *l = ctx;
    if (l->phase == PHASE_FAILED)
        l->config.failed(l->config.ctx, &l->err);
    else
        connect_next(l);
}

struct ws_link *ws_link_new(struct loop *loop, const struct ws_link_config *config, struct err *err)
{
    struct ws_link *l = xcalloc(1, sizeof *l);
    *l = (struct ws_link){.loop = loop, .config = *config, .fd = -1};
    l->config.address = xstrdup(config->address);
    l->config.server_name = config->server_name ? xstrdup(config->server_name) : NULL;
    if (config->tls)
        ws_tls_ref(config->tls);
    l->later = loop_timer_new(loop, run_later, l);
    bool is_unix = str_starts(config->address, "unix:");
    int r = is_unix ? set_unix(l, config->address + 5, err) : set_host_port(l, config->address, err);
    if (r < 0) {
        ws_link_free(l);
        return NULL;
    }
    if (is_unix)
        loop_timer_arm(l->later, 0);
    else
        l->resolve = loop_resolve_new(loop, l->host, l->port, on_resolved, l);
    return l;
}

void ws_link_free(struct ws_link *l)
{
    if (!l)
        return;
    loop_resolve_cancel(l->resolve);
    drop_socket(l);
    loop_timer_free(l->later);
    ws_tls_unref(l->config.tls);
    free((char *)l->config.address);
    free((char *)l->config.server_name);
    free(l->host);
    free(l->port);
    free(l->host_header);
    free(l);
}
