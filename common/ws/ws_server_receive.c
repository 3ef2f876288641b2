// SPDX-License-Identifier: Apache-2.0
// What comes in on connections without TLS is read here, with the codec of the client, and not by libwebsockets: a long
// body goes from the socket to where it belongs, without the buffer in between that libwebsockets has. That keeps the
// socket, writes to it and watches over its life; it only never reads again
// (docs/adr/0008-reading-past-libwebsockets.md).
#include "common/ws/ws_server_internal.h"

#include "common/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READS_A_TURN 4 // into places, then others get a turn
#define PLACE_MIN ((size_t)16 << 10)
#define PLACE_TAIL ((size_t)4 << 10)

enum { READY_MAX = 64 };

// libuv watches a descriptor for one owner, who is libwebsockets: so they are in an epoll instance of their own, which
// libuv watches.
struct ws_receivers {
    int epoll;
    struct loop_poll *poll;
    struct loop_look *look;
    struct epoll_event ready[READY_MAX]; // those that come in this turn, up to n_ready; NULL: it has ended meanwhile
    int n_ready;
    struct list fresh; // those that have opened since the last turn: libwebsockets still has what came with the request
};

struct ws_receiver {
    struct list fresh;
    struct ws_session *session;
    struct frame_reader frames;
    bool begun; // libwebsockets reads no more
    bool watched;
    bool ended; // there is nothing to read any more
};

// Who is not watched is not in the set: of a hang-up it would tell all the time.
void ws_receiver_watch(struct ws_session *s)
{
    struct ws_receiver *r = s->receiver;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
    bool watched = r->begun && !s->paused && !r->ended;
    if (watched == r->watched)
        return;
    r->watched = watched;
    int op = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    if (epoll_ctl(s->connection->server->receivers->epoll, op, s->connection->fd, &e) < 0 && watched)
        ws_session_cut(s); // the kernel has no room for another: better gone than deaf
}

static void take_event(struct ws_session *s, const struct frame_event *e)
{
    switch (e->type) {
    case FRAME_EVENT_DATA:
        ws_session_take(s, e->text, e->data, e->len, e->last);
        break;
    case FRAME_EVENT_PING:
        ws_session_pong(s, e->data, e->len);
        break;
    case FRAME_EVENT_PONG: // something was heard, which is all
        break;
    case FRAME_EVENT_CLOSE:
        ws_session_peer_closed(s, e->code, e->data, e->len);
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
            ws_session_refuse(s, frames->close_code, err.msg);
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
    ws_session_cut(s);
}

// False: there is no more for now, or others get a turn first.
static bool read_once(struct ws_session *s)
{
    struct ws_server *server = s->connection->server;
    struct iovec into[2] = {find_place(s), {server->read_buf, server->config.read_size}};
    bool placed = into[0].iov_len > 0;
    if (placed)
        into[1].iov_len = PLACE_TAIL; // a head or two: what else comes has a place of its own
    size_t want = into[0].iov_len + into[1].iov_len;
    ssize_t n =
        recvmsg(s->connection->fd, &(struct msghdr){.msg_iov = into + !placed, .msg_iovlen = placed ? 2 : 1}, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        end(s);
        return false;
    }
    s->heard = true;
    size_t first = MIN((size_t)n, into[0].iov_len);
    take(s, into[0].iov_base, first);
    take(s, (char *)server->read_buf, (size_t)n - first);
    return placed && (size_t)n == want && !s->paused && !s->cut;
}

static void read_turn(struct ws_session *s)
{
    for (int i = 0; i < READS_A_TURN && !s->paused; i++)
        if (!read_once(s))
            return;
}

static bool read_ready(void *ctx)
{
    struct ws_receivers *all = ctx;
    int n = epoll_wait(all->epoll, all->ready, READY_MAX, 0);
    all->n_ready = n;
    for (int i = 0; i < n; i++)
        if (all->ready[i].data.ptr)
            read_turn(all->ready[i].data.ptr);
    all->n_ready = 0;
    return n > 0;
}

static void on_ready(void *ctx, int events)
{
    (void)events;
    (void)read_ready(ctx);
}

void ws_receiver_new(struct ws_session *s)
{
    const struct ws_server *server = s->connection->server;
    if (!server->receivers || lws_is_ssl(s->connection->wsi))
        return;
    s->receiver = xcalloc(1, sizeof *s->receiver);
    s->receiver->session = s;
    frame_reader_init(&s->receiver->frames, true, server->config.max_message);
    list_append(&server->receivers->fresh, &s->receiver->fresh);
}

// Frames that were glued to the request, which is not allowed, are in libwebsockets' hands, and would be lost there if
// it stopped at once. Before the next turn it can have read nothing else.
void ws_receivers_begin(struct ws_server *server)
{
    for (struct list *l; server->receivers && (l = list_pop(&server->receivers->fresh));) {
        struct ws_receiver *r = CONTAINER_OF(l, struct ws_receiver, fresh);
        r->begun = true;
        if (!r->session->cut)
            lws_rx_flow_control(r->session->connection->wsi, 0);
        ws_receiver_watch(r->session);
    }
}

bool ws_receiver_failed(const struct ws_session *s)
{
    return s->receiver && s->receiver->frames.failed;
}

void ws_receiver_free(struct ws_session *s)
{
    struct ws_receivers *all = s->connection->server->receivers;
    if (!s->receiver)
        return;
    s->receiver->ended = true;
    ws_receiver_watch(s);
    list_remove(&s->receiver->fresh);
    for (int i = 0; i < all->n_ready; i++)
        if (all->ready[i].data.ptr == s)
            all->ready[i].data.ptr = NULL;
    free(TAKE_PTR(s->receiver));
}

void ws_receivers_new(struct ws_server *server)
{
    struct err ignored = ERR_INIT;
    struct ws_receivers *all = xcalloc(1, sizeof *all);
    list_init(&all->fresh);
    all->epoll = epoll_create1(EPOLL_CLOEXEC);
    all->poll = all->epoll < 0 ? NULL : loop_poll_new(server->loop, all->epoll, on_ready, all);
    all->look = loop_look_new(server->loop, read_ready, all);
    server->receivers = all;
    if (!all->poll || loop_poll_set(all->poll, LOOP_READ, &ignored) < 0)
        ws_receivers_free(server); // then all is as it is with TLS
}

void ws_receivers_free(struct ws_server *server)
{
    struct ws_receivers *all = TAKE_PTR(server->receivers);
    if (!all)
        return;
    loop_look_free(all->look);
    loop_poll_free(all->poll);
    if (all->epoll >= 0)
        close(all->epoll);
    free(all);
}
