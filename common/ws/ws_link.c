// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_link.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/ws/memory.h"
#include "common/ws/ws_dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum phase { PHASE_LOOKUP, PHASE_CONNECT, PHASE_TLS, PHASE_UP, PHASE_FAILED };

struct ws_link {
    struct loop *loop;
    struct ws_link_config config;
    enum phase phase;
    struct ws_addresses *own; // if the owner has none
    bool looks;               // the name is being looked up
    struct ws_address list[WS_ADDRESSES_MAX];
    size_t n_list;
    const struct ws_address *used; // in it; NULL = none yet
    char at[WS_LINK_AT_SIZE];
    struct ws_dial *dial;
    int fd;
    struct loop_poll *poll;
    struct ws_tls_stream *tls;
    struct loop_timer *later; // fails from the loop
    struct err err;
    int wanted;
    bool read_waits_write; // TLS: reading continues when the socket is writable
};

static void on_events(void *ctx, int events);

static bool is_unix(const struct ws_link *l)
{
    return str_starts(l->config.address, "unix:");
}

const char *ws_link_host(const struct ws_link *l)
{
    return is_unix(l) ? "localhost" : l->config.address;
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
    const struct sockaddr_storage *sa = &l->used->sa;
    return l->tls || sa->ss_family == AF_UNIX || is_loopback(sa);
}

const char *ws_link_at(const struct ws_link *l)
{
    return l->at;
}

static struct ws_addresses *addresses_of(const struct ws_link *l)
{
    return l->config.addresses ? l->config.addresses : l->own;
}

static void note_failure(struct ws_link *l, const struct ws_address *a)
{
    if (addresses_of(l))
        ws_addresses_failed(addresses_of(l), a);
}

void ws_link_avoid(struct ws_link *l)
{
    if (l->used)
        note_failure(l, l->used);
}

static void drop_socket(struct ws_link *l)
{
    ws_dial_free(TAKE_PTR(l->dial));
    ws_tls_stream_free(TAKE_PTR(l->tls));
    loop_poll_free(TAKE_PTR(l->poll));
    file_close(&l->fd);
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
    if (l->phase == PHASE_TLS && ws_tls_stream_wants_write(l->tls))
        events = LOOP_WRITE;
    else if (l->phase == PHASE_TLS)
        events = LOOP_READ;
    else if (l->read_waits_write && (events & LOOP_READ))
        events |= LOOP_WRITE;
    loop_poll_set(l->poll, events, &err); // the next read or write returns an error
}

static void on_connected(void *ctx, int fd, size_t which);

static void cannot_connect(struct ws_link *l, int error)
{
    bool nobody = is_unix(l) && (error == ENOENT || error == ECONNREFUSED);
    err_set(&l->err, ERR_UNAVAILABLE, "cannot connect to %s: %s%s", l->config.address, strerror(error),
            nobody ? ": nothing listens there, it has not begun or has ended" : "");
}

static void on_no_connection(void *ctx, int error)
{
    struct ws_link *l = ctx;
    for (size_t i = 0; i < l->n_list; i++)
        note_failure(l, &l->list[i]);
    cannot_connect(l, error);
    fail(l);
}

static void connect_begin(struct ws_link *l)
{
    const struct ws_dial_config config = {
        .list = l->list, .n = l->n_list, .connected = on_connected, .failed = on_no_connection, .ctx = l};
    l->phase = PHASE_CONNECT;
    l->dial = ws_dial_new(l->loop, &config);
}

static void on_found(void *ctx, const struct err *err)
{
    struct ws_link *l = ctx;
    const struct ws_addresses *a = addresses_of(l);
    l->looks = false;
    if (err->code) {
        l->err = *err;
        fail(l);
        return;
    }
    for (; l->n_list < ws_addresses_count(a); l->n_list++)
        l->list[l->n_list] = *ws_addresses_at(a, l->n_list);
    connect_begin(l);
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

static void begin_tls(struct ws_link *l)
{
    const struct ws_addresses *a = addresses_of(l);
    const char *name = l->config.server_name ? l->config.server_name : a ? ws_addresses_host(a) : "localhost";
    l->phase = PHASE_TLS;
    l->tls = ws_tls_stream_new(l->config.tls, l->fd, name, &l->err);
    if (l->tls)
        tls_next(l);
    else
        fail(l);
}

static void write_at(struct ws_link *l)
{
    char host[48], port[8], address[64];
    const struct ws_address *a = l->used;
    if (a->sa.ss_family == AF_UNIX || getnameinfo((const struct sockaddr *)&a->sa, a->len, host, sizeof host, port,
                                                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    snprintf(address, sizeof address, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    if (!str_eq(address, l->config.address))
        snprintf(l->at, sizeof l->at, " (%s)", address);
}

static void on_connected(void *ctx, int fd, size_t which)
{
    struct ws_link *l = ctx;
    for (size_t i = 0; i < l->n_list; i++)
        if (i != which && ws_dial_tried(l->dial, i))
            note_failure(l, &l->list[i]);
    ws_dial_free(TAKE_PTR(l->dial));
    l->fd = fd;
    l->used = &l->list[which];
    write_at(l);
    l->poll = loop_poll_new(l->loop, fd, on_events, l);
    if (!l->poll) {
        cannot_connect(l, errno);
        fail(l);
    } else if (l->config.tls) {
        begin_tls(l);
    } else {
        up(l);
    }
}

static void on_events(void *ctx, int events)
{
    struct ws_link *l = ctx;
    if (l->phase == PHASE_TLS) {
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

bool ws_link_ended(const struct ws_link *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLRDHUP};
    return l->phase == PHASE_UP && poll(&p, 1, 0) > 0;
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
    memcpy(&l->list[0].sa, &sa, sizeof sa);
    l->list[0].len = sizeof sa;
    l->n_list = 1;
    loop_timer_arm(l->later, 0);
    return 0;
}

static int set_host_port(struct ws_link *l, struct err *err)
{
    if (!l->config.addresses && !(l->own = ws_addresses_new(l->loop, l->config.address, err)))
        return err->code;
    l->looks = true;
    ws_addresses_find(addresses_of(l), on_found, l);
    return 0;
}

// A failure, or the beginning for a Unix socket.
static void run_later(void *ctx)
{
    struct ws_link *l = ctx;
    if (l->phase == PHASE_FAILED)
        l->config.failed(l->config.ctx, &l->err);
    else
        connect_begin(l);
}

struct ws_link *ws_link_new(struct loop *loop, const struct ws_link_config *config, struct err *err)
{
    struct ws_link *l = xcalloc(1, sizeof *l);
    *l = (struct ws_link){.loop = loop, .config = *config, .fd = -1};
    if (config->tls)
        ws_tls_ref(config->tls);
    l->later = loop_timer_new(loop, run_later, l);
    int r = is_unix(l) ? set_unix(l, config->address + 5, err) : set_host_port(l, err);
    if (r == 0)
        return l;
    ws_link_free(l);
    return NULL;
}

void ws_link_free(struct ws_link *l)
{
    if (!l)
        return;
    if (l->looks)
        ws_addresses_cancel(addresses_of(l));
    ws_link_avoid(l);
    ws_addresses_free(l->own);
    drop_socket(l);
    loop_timer_free(l->later);
    ws_tls_unref(l->config.tls);
    free(l);
}
