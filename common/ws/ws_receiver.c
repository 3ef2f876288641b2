// SPDX-License-Identifier: Apache-2.0
// What comes in on an open session is read here, with the codec of the client, and not by libwebsockets: one reader
// keeps RFC 6455's rules whether there is TLS or not, and a long body goes from the socket, or from OpenSSL, to where
// it belongs, without the buffer in between that libwebsockets has. libwebsockets keeps the socket and its TLS, writes
// to it and watches over its life; it only never reads again (docs/adr/0008-reading-past-libwebsockets.md).
#include "common/ws/ws_receiver.h"

#include "common/base/mem.h"
#include "common/ws/ws_fair_queue.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define READS_A_TURN 4                   // into places, then others get a turn
#define BYTES_A_TURN ((size_t)512 << 10) // of all sessions: then those that are still to be read wait for the next turn
#define BYTES_MIN ((size_t)8 << 10)      // a session that is read counts as so much at least
#define PLACE_MIN ((size_t)16 << 10)
#define PLACE_TAIL ((size_t)4 << 10)

enum {
    READY_MAX = 64, // that the kernel tells of at a time ...
    ASKS_A_TURN = 16,
    TLS_READS_A_TURN = 32,    // of a TLS record each, 16 KiB ...
    TLS_READS_AMONG_MANY = 4, // ... while others are to be read, too
};

// libuv watches a descriptor for one owner, who is libwebsockets: so they are in an epoll instance of their own, which
// libuv watches. It tells of what arrives once: who is to be read is in `queue` until nothing is left to read.
struct ws_receivers {
    int epoll;
    struct loop_poll *poll;
    struct loop_look *look;
    struct ws_fair_queue queue;
    uint64_t turn;
    size_t left;       // bytes of this turn
    struct list later; // those that were read in this turn, and are to be read again
    int bell;          // an event that makes the next turn come at once ...
    bool rung;
    struct list fresh; // those that have opened since the last turn: libwebsockets still has what came with the request
};

struct ws_receiver {
    struct list fresh, ready, later;
    uint64_t read_at; // the last turn in which it was read
    struct ws_session *session;
    struct ws_owner *owner;
    const struct ws_receiver_events *on;
    SSL *ssl; // NULL: without TLS
    struct frame_reader frames;
    bool begun; // libwebsockets reads no more
    bool watched;
    bool ended;   // there is nothing to read any more
    bool more;    // there may be something to read: the kernel said so, and the last read did not find the end of it
    bool hung_up; // nothing will come after that, not even a word of the kernel
};

// Each is read once in a turn.
static void note_ready(struct ws_receiver *r)
{
    struct ws_receivers *all = r->session->connection->server->receivers;
    bool ready = r->watched && r->more, later = r->read_at == all->turn;
    list_remove(&r->later);
    if (!ready)
        ws_owner_leave(r->owner, &r->ready);
    else if (later)
        list_append(&all->later, &r->later);
    else
        ws_owner_ready(r->owner, &r->ready);
}

static void ring(struct ws_receivers *all)
{
    if (all->rung || (!all->queue.n_ready && list_empty(&all->later)))
        return;
    all->rung = true;
    if (eventfd_write(all->bell, 1) < 0)
        abort(); // it takes more of them than there will be turns
}

// Who is not watched is not in the set: of a hang-up it would tell all the time.
void ws_receiver_watch(struct ws_session *s)
{
    struct ws_receiver *r = s->receiver;
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = s};
    bool watched = r->begun && !s->paused && !r->ended;
    if (watched == r->watched)
        return;
    r->watched = watched;
    note_ready(r);
    ring(s->connection->server->receivers);
    int op = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    if (epoll_ctl(s->connection->server->receivers->epoll, op, s->connection->fd, &e) < 0 && watched)
        s->receiver->on->ended(s); // the kernel has no room for another: better gone than deaf
}

static void take_event(struct ws_session *s, const struct frame_event *e)
{
    switch (e->type) {
    case FRAME_EVENT_DATA:
        s->receiver->on->data(s, e->text, e->data, e->len, e->last);
        break;
    case FRAME_EVENT_PING:
        s->receiver->on->ping(s, e->data, e->len);
        break;
    case FRAME_EVENT_PONG: // something was heard, which is all
        break;
    case FRAME_EVENT_CLOSE:
        s->receiver->on->closed(s, e->code, e->data, e->len);
        break;
    }
}

static void take(struct ws_session *s, char *data, size_t len)
{
    struct frame_event e;
    struct err err = ERR_INIT;
    struct frame_reader *frames = &s->receiver->frames;
    while (!frames->failed && len) {
        int got = frame_reader_next(frames, &data, &len, &e, &err);
        if (got < 0)
            s->receiver->on->refused(s, frames->close_code, err.msg);
        if (got <= 0)
            return;
        take_event(s, &e);
    }
}

// Where the payload that comes next is to go; empty if it is only little, or may be something else.
static struct iovec find_place(struct ws_session *s)
{
    const struct ws_server_config *config = &s->connection->server->config;
    size_t left = config->on_place && !s->closing ? frame_reader_data_left(&s->receiver->frames) : 0, room = 0;
    char *place = left >= PLACE_MIN ? config->on_place(config->ctx, s, &room) : NULL;
    room = place ? MIN(room, left) : 0;
    return room >= PLACE_MIN ? (struct iovec){place, room} : (struct iovec){NULL, 0};
}

static void end(struct ws_session *s)
{
    s->receiver->ended = true;
    ws_receiver_watch(s);
    s->receiver->on->ended(s);
}

// Bytes, 0 where there are none now, below 0 where there will be no more.
static ssize_t read_socket(struct ws_session *s, struct iovec into[2])
{
    struct ws_receiver *r = s->receiver;
    bool placed = into[0].iov_len > 0;
    if (placed)
        into[1].iov_len = PLACE_TAIL; // a head or two: what else comes has a place of its own
    struct msghdr m = {.msg_iov = into + !placed, .msg_iovlen = placed ? 2 : 1};
    ssize_t n = recvmsg(s->connection->fd, &m, 0);
    bool none = n < 0 && errno == EAGAIN, interrupted = n < 0 && errno == EINTR;
    size_t room = into[1].iov_len + (placed ? into[0].iov_len : 0);
    r->more = interrupted || (n > 0 && ((size_t)n == room || r->hung_up));
    if (none || interrupted)
        return 0;
    return n ? n : -1;
}

static ssize_t read_tls(struct ws_receiver *r, const struct iovec into[2])
{
    const struct iovec *to = &into[into[0].iov_len == 0];
    ERR_clear_error();
    int n = SSL_read(r->ssl, to->iov_base, (int)MIN(to->iov_len, (size_t)INT_MAX));
    int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(r->ssl, n);
    ERR_clear_error(); // libwebsockets looks at the same list
    r->more = n > 0;
    if (n > 0)
        return n;
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

// False: there is no more for now, or others get a turn first. *wave: bytes of what has no place of its own.
static bool read_once(struct ws_session *s, size_t *wave, size_t *bytes)
{
    struct ws_server *server = s->connection->server;
    struct iovec into[2] = {find_place(s), {server->read_buf, server->config.read_size}};
    bool placed = into[0].iov_len > 0;
    ssize_t n = s->receiver->ssl ? read_tls(s->receiver, into) : read_socket(s, into);
    if (n < 0)
        end(s);
    if (n <= 0)
        return false;
    s->heard = true;
    *bytes += (size_t)n;
    size_t first = MIN((size_t)n, into[0].iov_len);
    take(s, into[0].iov_base, first);
    take(s, server->read_buf, (size_t)n - first);
    *wave += placed ? 0 : (size_t)n;
    if (s->paused || s->cut)
        return false;
    return s->receiver->ssl || (placed && (size_t)n == into[0].iov_len + into[1].iov_len);
}

// What came of a wave of short messages goes out before the next one is read.
static void read_turn(struct ws_session *s, bool alone)
{
    struct ws_receivers *all = s->connection->server->receivers;
    struct ws_receiver *r = s->receiver;
    int reads = !r->ssl ? READS_A_TURN : alone ? TLS_READS_A_TURN : TLS_READS_AMONG_MANY;
    size_t wave = 0, bytes = 0;
    for (int i = 0; i < reads && !s->paused && wave < WS_WAVE; i++)
        if (!read_once(s, &wave, &bytes))
            break;
    bytes = MAX(bytes, BYTES_MIN);
    all->left -= MIN(bytes, all->left);
    r->read_at = all->turn;
    note_ready(r);
    ws_fair_queue_spend(&all->queue, bytes);
}

static void heard_of(struct ws_receiver *r, uint32_t events)
{
    r->more = true;
    r->hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    note_ready(r);
}

// Whether the kernel told of any.
static bool ask_kernel(struct ws_receivers *all)
{
    struct epoll_event ready[READY_MAX];
    int n = READY_MAX;
    bool any = false;
    for (int i = 0; i < ASKS_A_TURN && n == READY_MAX; i++) {
        n = epoll_wait(all->epoll, ready, READY_MAX, 0);
        for (int k = 0; k < n; k++) {
            struct ws_session *s = ready[k].data.ptr;
            if (s)
                heard_of(s->receiver, ready[k].events);
            all->rung &= s != NULL;
        }
        any |= n > 0;
    }
    return any;
}

// Those that were read in an earlier turn, behind those that the kernel has just told of.
static void read_again(struct ws_receivers *all)
{
    struct list batch = LIST_INIT(batch);
    LIST_FOREACH(l, &all->later) {
        list_remove(l);
        list_append(&batch, l);
    }
    for (struct list *l; (l = list_pop(&batch));)
        note_ready(CONTAINER_OF(l, struct ws_receiver, later));
}

static bool read_ready(void *ctx)
{
    struct ws_receivers *all = ctx;
    struct list *next;
    bool any = ask_kernel(all);
    read_again(all);
    while (all->left && (next = ws_fair_queue_next(&all->queue)))
        read_turn(CONTAINER_OF(next, struct ws_receiver, ready)->session, !all->queue.n_ready);
    ring(all);
    return any;
}

static void on_ready(void *ctx, int events)
{
    (void)events;
    (void)read_ready(ctx);
}

void ws_receiver_new(struct ws_session *s, const struct ws_receiver_events *on)
{
    const struct ws_server *server = s->connection->server;
    s->receiver = xcalloc(1, sizeof *s->receiver);
    s->receiver->session = s;
    s->receiver->on = on;
    s->receiver->ssl = lws_get_ssl(s->connection->wsi);
    list_init(&s->receiver->ready);
    list_init(&s->receiver->later);
    s->receiver->owner = ws_fair_queue_owner(&server->receivers->queue, "", 1);
    frame_reader_init(&s->receiver->frames, true, server->config.max_message);
    list_append(&server->receivers->fresh, &s->receiver->fresh);
}

// The head of a record is not read by itself, and a connection that is silent keeps no buffers.
static void tls_begin(struct ws_receiver *r)
{
    SSL_set_read_ahead(r->ssl, 1);
    SSL_set_mode(r->ssl, SSL_MODE_RELEASE_BUFFERS);
    r->more = SSL_has_pending(r->ssl);
}

// Frames that were glued to the request, which is not allowed, are in libwebsockets' hands, and would be lost there if
// it stopped at once. Before the next turn it can have read nothing else.
void ws_receivers_begin(struct ws_server *server)
{
    struct ws_receivers *all = server->receivers;
    all->turn++;
    all->left = BYTES_A_TURN;
    for (struct list *l; (l = list_pop(&all->fresh));) {
        struct ws_receiver *r = CONTAINER_OF(l, struct ws_receiver, fresh);
        r->begun = true;
        if (r->ssl)
            tls_begin(r);
        if (!r->session->cut)
            lws_rx_flow_control(r->session->connection->wsi, 0);
        ws_receiver_watch(r->session);
    }
}

void ws_receiver_owner(struct ws_session *s, const char *name, unsigned weight)
{
    struct ws_receiver *r = s->receiver;
    struct ws_owner *before = r->owner;
    r->owner = ws_fair_queue_owner(&s->connection->server->receivers->queue, name, weight);
    ws_owner_leave(before, &r->ready);
    ws_owner_unref(before);
    note_ready(r);
}

bool ws_receiver_failed(const struct ws_session *s)
{
    return s->receiver && s->receiver->frames.failed;
}

void ws_receiver_free(struct ws_session *s)
{
    struct ws_receiver *r = s->receiver;
    if (!r)
        return;
    r->ended = true;
    ws_receiver_watch(s);
    list_remove(&r->fresh);
    ws_owner_unref(r->owner);
    free(TAKE_PTR(s->receiver));
}

int ws_receivers_new(struct ws_server *server, struct err *err)
{
    struct ws_receivers *all = server->receivers = xcalloc(1, sizeof *all);
    list_init(&all->fresh);
    list_init(&all->later);
    ws_fair_queue_init(&all->queue);
    all->epoll = epoll_create1(EPOLL_CLOEXEC);
    all->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (all->epoll < 0 || all->bell < 0 ||
        epoll_ctl(all->epoll, EPOLL_CTL_ADD, all->bell, &(struct epoll_event){.events = EPOLLIN | EPOLLET}) < 0)
        return err_set(err, ERR_IO, "no descriptor for the server's connections: %s", strerror(errno));
    all->poll = loop_poll_new(server->loop, all->epoll, on_ready, all);
    all->look = loop_look_new(server->loop, read_ready, all);
    return loop_poll_set(all->poll, LOOP_READ, err);
}

void ws_receivers_free(struct ws_server *server)
{
    struct ws_receivers *all = TAKE_PTR(server->receivers);
    if (!all)
        return;
    loop_look_free(all->look);
    loop_poll_free(all->poll);
    ws_fair_queue_done(&all->queue);
    if (all->epoll >= 0)
        close(all->epoll);
    if (all->bell >= 0)
        close(all->bell);
    free(all);
}
