// SPDX-License-Identifier: Apache-2.0
#include "worker/host/object_server.h"

#include "common/base/file.h"
#include "common/base/list.h"
#include "common/base/listen_socket.h"
#include "common/base/str.h"
#include "common/wire/ref.h"
#include "worker/host/peer_wire.h"
#include "worker/host/rendezvous.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RETRY_MS = 100, PIECE = 1 << 20 };

struct peer {
    struct list link;
    struct object_server *server;
    int fd;
    struct loop_poll *poll;
    struct loop_timer *silent;
    char question[PEER_REQUEST_LEN], head[PEER_ANSWER_LEN];
    size_t asked; // bytes of the question that have arrived
    bool answering;
    struct blob *blob;        // follows the head
    size_t offset, len, sent; // sent: of head and body together
    // Values on the device come after the blob. by_handle: the peer maps them, and they stay until it hangs up.
    struct region *values; // NULL = none
    bool by_handle;
    char *piece; // the current piece of the values, in host memory; NULL = not yet
    size_t piece_at, piece_len;
    struct executor_job job; // copies the next piece
    bool copying, parted;    // parted: the peer is freed when the job is done
    struct err why;          // the error of the job
};

struct object_server {
    struct object_server_config config;
    char *secret; // NULL = not known yet
    int fd, port;
    struct loop_poll *poll;
    struct loop_timer *retry; // after running out of descriptors
    struct list peers;
    unsigned n;
};

static void release(struct peer *p)
{
    region_unref(p->values);
    free(p->piece);
    free(p);
}

static void part(struct peer *p)
{
    list_remove(&p->link);
    p->server->n--;
    loop_poll_free(p->poll);
    loop_timer_free(p->silent);
    file_close(&p->fd);
    blob_unref(p->blob);
    p->parted = p->copying && !rank_device_withdraw(p->server->config.device, &p->job);
    if (!p->parted)
        release(p);
}

static void on_silent(void *ctx)
{
    part(ctx);
}

// Answering

static void say(struct peer *p, struct peer_answer answer, struct blob *blob, size_t offset)
{
    p->answering = true;
    p->blob = blob;
    p->offset = offset;
    p->len = blob->len - offset;
    peer_answer_write(&answer, p->head);
}

static void refuse(struct peer *p, int code, const char *why)
{
    size_t len = strlen(why);
    say(p, (struct peer_answer){PEER_BYTES, (uint32_t)-code, len}, blob_copy(why, len, NULL), 0);
}

static struct blob *handle_and_head(const struct kept_object *o)
{
    size_t head = o->blob->len - o->offset;
    struct blob *blob = blob_new(DEVICE_HANDLE_SIZE + head, NULL);
    memcpy(blob->data, o->values->handle.bytes, DEVICE_HANDLE_SIZE);
    memcpy(blob->data + DEVICE_HANDLE_SIZE, o->blob->data + o->offset, head);
    return blob;
}

static void give(struct peer *p, const struct kept_object *o, uint32_t place)
{
    struct peer_answer answer = {.len = o->len};
    if (o->values) {
        p->values = region_ref(o->values);
        p->by_handle = o->values->shared && place == rank_device_place(p->server->config.device);
        answer.form = p->by_handle ? PEER_HANDLE : place != PEER_NO_GPU ? PEER_VALUES : PEER_BYTES;
    }
    if (p->by_handle)
        say(p, answer, handle_and_head(o), 0);
    else
        say(p, answer, blob_ref(o->blob), o->offset);
}

// The connection belongs to the rendezvous from now on: nothing is read from it here.
static void hand_over(struct peer *p, const struct peer_request *q)
{
    char head[PEER_ANSWER_LEN];
    peer_answer_write(&(struct peer_answer){PEER_BYTES, 0, 0}, head);
    loop_poll_free(TAKE_PTR(p->poll));
    if (send(p->fd, head, sizeof head, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof head)
        rendezvous_join(p->server->config.rendezvous, p->fd, q);
    else
        close(p->fd);
    p->fd = -1;
}

static void answer(struct peer *p)
{
    const struct object_server *s = p->server;
    struct peer_request q;
    struct err err = ERR_INIT;
    peer_request_read(p->question, &q);
    if (s->config.rendezvous && q.magic == PEER_JOIN_MAGIC) {
        if (rendezvous_admits(s->secret, &q, &err))
            hand_over(p, &q);
        else
            refuse(p, err.code, err.msg);
    } else if (q.magic != PEER_OBJECT_MAGIC) {
        refuse(p, ERR_PROTO, "this is not a request for an object");
    } else if (!s->secret) {
        refuse(p, ERR_UNAVAILABLE, "this worker does not know the group's keys yet");
    } else if (!ref_key_good(s->secret, q.id, q.until, q.key, sizeof q.key)) {
        refuse(p, ERR_FORBIDDEN, "the key does not fit the object");
    } else if (q.until < clock_wall_ms(&clock_system)) {
        refuse(p, ERR_FORBIDDEN, "the key has expired: the call waited too long, or clocks differ");
    } else {
        const struct kept_object *o = object_store_get(s->config.store, q.id);
        if (o)
            give(p, o, q.place);
        else
            refuse(p, ERR_NOT_FOUND, "it was freed");
    }
}

// Copies the next piece of the values from the device.

static void copy_piece(struct executor_job *job)
{
    struct peer *p = CONTAINER_OF(job, struct peer, job);
    p->piece_at += p->piece_len;
    p->piece_len = MIN((size_t)PIECE, p->values->len - p->piece_at);
    (void)rank_device_download(p->values->owner, p->piece, (char *)p->values->memory + p->piece_at, p->piece_len, NULL,
                               &p->why);
}

static void on_peer(void *ctx, int events);

static void piece_copied(struct executor_job *job)
{
    struct peer *p = CONTAINER_OF(job, struct peer, job);
    p->copying = false;
    if (p->why.code == ERR_GONE)
        rank_device_lost(p->values->owner, p->why.msg);
    else if (p->why.code < 0)
        fprintf(stderr, "cadre-worker: an object on the GPU cannot be given to another rank: %s\n", p->why.msg);
    if (p->parted)
        release(p);
    else if (p->why.code < 0)
        part(p); // the peer notices that the rest is missing
    else
        on_peer(p, 0);
}

static void begin_piece(struct peer *p)
{
    if (!p->piece)
        p->piece = xmalloc(MIN((size_t)PIECE, p->values->len));
    p->why = ERR_INIT;
    p->copying = true;
    p->job = (struct executor_job){.run = copy_piece, .done = piece_copied};
    rank_device_submit(p->server->config.device, &p->job);
}

// Returns false if the connection is over.
static bool write_values(struct peer *p)
{
    size_t before = sizeof p->head + p->len;
    while (p->sent < before + p->values->len) {
        size_t at = p->sent - before - p->piece_at;
        if (at == p->piece_len) {
            begin_piece(p);
            return true;
        }
        ssize_t n = send(p->fd, p->piece + at, p->piece_len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        p->sent += (size_t)n;
        loop_timer_arm(p->silent, OBJECT_SERVER_SILENT_MS);
    }
    return false;
}

// Returns false if the connection is over.
static bool write_more(struct peer *p)
{
    size_t head = sizeof p->head, total = head + p->len;
    while (p->sent < total) {
        size_t in_body = p->sent > head ? p->sent - head : 0;
        struct iovec parts[2] = {{p->head + MIN(p->sent, head), head - MIN(p->sent, head)},
                                 {p->blob->data + p->offset + in_body, p->len - in_body}};
        const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = sendmsg(p->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        p->sent += (size_t)n;
        loop_timer_arm(p->silent, OBJECT_SERVER_SILENT_MS);
    }
    return p->by_handle || (p->values && write_values(p));
}

// The peer has got the handle.
static bool has_handle(const struct peer *p)
{
    return p->by_handle && p->sent == sizeof p->head + p->len;
}

// The peer hangs up when it has copied the values. It sends nothing before.
static bool is_there(const struct peer *p)
{
    char byte;
    return recv(p->fd, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR);
}

// Returns false if the connection is over.
static bool read_more(struct peer *p)
{
    ssize_t n = recv(p->fd, p->question + p->asked, sizeof p->question - p->asked, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    p->asked += (size_t)n;
    if (p->asked == sizeof p->question)
        answer(p);
    return true;
}

static void on_peer(void *ctx, int events)
{
    struct peer *p = ctx;
    struct err err = ERR_INIT;
    (void)events;
    bool on = p->answering || read_more(p);
    if (on && has_handle(p))
        on = is_there(p);
    else if (on && p->answering)
        on = write_more(p);
    on = on && p->fd >= 0;
    int wanted = p->copying ? 0 : p->answering && !has_handle(p) ? LOOP_WRITE : LOOP_READ;
    if (!on || loop_poll_set(p->poll, wanted, &err) < 0)
        part(p);
}

// Connections

static void take(struct object_server *s, int fd)
{
    struct err err = ERR_INIT;
    struct peer *p = xcalloc(1, sizeof *p);
    *p = (struct peer){.server = s, .fd = fd};
    p->poll = loop_poll_read(s->config.loop, fd, on_peer, p, &err);
    p->silent = loop_timer_new(s->config.loop, on_silent, p);
    list_append(&s->peers, &p->link);
    s->n++;
    loop_timer_arm(p->silent, OBJECT_SERVER_SILENT_MS);
    if (!p->poll)
        part(p);
}

// Drops a peer that has asked for nothing, to make room: most peers ask at once.
static void drop_silent(struct object_server *s)
{
    LIST_FOREACH(i, &s->peers) {
        struct peer *p = CONTAINER_OF(i, struct peer, link);
        if (!p->answering) {
            part(p);
            return;
        }
    }
}

static void on_connection(void *ctx, int events)
{
    struct object_server *s = ctx;
    struct err err = ERR_INIT;
    int fd;
    (void)events;
    while ((fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (s->n >= OBJECT_SERVER_PEERS_MAX)
            drop_silent(s);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (s->n < OBJECT_SERVER_PEERS_MAX)
            take(s, fd);
        else
            close(fd);
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return;
    loop_poll_set(s->poll, 0, &err); // there are no descriptors: the socket would stay readable
    loop_timer_arm(s->retry, RETRY_MS);
}

static void on_retry(void *ctx)
{
    struct object_server *s = ctx;
    struct err err = ERR_INIT;
    loop_poll_set(s->poll, LOOP_READ, &err);
}

struct object_server *object_server_new(const struct object_server_config *config, struct err *err)
{
    char address[32];
    int port;
    snprintf(address, sizeof address, "%s:%d", config->local ? "127.0.0.1" : "", config->port);
    int fd = listen_socket_open(address, &port, err);
    if (fd < 0) {
        err_wrap(err, "objects for other workers");
        return NULL;
    }
    struct object_server *s = xcalloc(1, sizeof *s);
    *s = (struct object_server){.config = *config, .fd = fd, .port = port};
    list_init(&s->peers);
    s->poll = loop_poll_read(s->config.loop, fd, on_connection, s, err);
    s->retry = loop_timer_new(s->config.loop, on_retry, s);
    if (!s->poll) {
        object_server_free(s);
        return NULL;
    }
    return s;
}

void object_server_free(struct object_server *s)
{
    if (!s)
        return;
    LIST_FOREACH(p, &s->peers)
        part(CONTAINER_OF(p, struct peer, link));
    loop_poll_free(s->poll);
    loop_timer_free(s->retry);
    close(s->fd);
    free(s->secret);
    free(s);
}

int object_server_port(const struct object_server *s)
{
    return s->port;
}

void object_server_secret(struct object_server *s, const char *secret)
{
    if (str_eq(s->secret, secret))
        return;
    free(s->secret);
    s->secret = xstrdup(secret);
}
