// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_reader.h"

#include "common/base/file.h"
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

#define BYTES_A_TURN ((size_t)512 << 10) // of all connections; the others wait for the next turn
#define BYTES_MIN ((size_t)8 << 10)      // each read counts as at least this much
#define BUFFER_TAIL ((size_t)4 << 10)

enum {
    READY_MAX = 64, // events that the kernel reports at a time ...
    ASKS_A_TURN = 16,
};

// libuv watches a descriptor for one owner only, and libwebsockets is this owner. So the descriptors are also in an
// epoll instance of their own, which libuv watches. It reports each arrival once, so a reader stays in `queue` until
// nothing is left to read.
struct ws_readers {
    int epoll;
    struct loop_poll *poll;
    struct ws_fair_queue queue;
    uint64_t turn;
    size_t left;       // bytes of this turn
    struct list later; // readers that were read in this turn, and have more to read
    int bell;          // an event that makes the next turn come at once ...
    bool rung;
    struct list fresh; // new readers since the last turn: libwebsockets still has the bytes that came with the request
};

// A reader is read once in a turn.
static void note_ready(struct ws_reader *r)
{
    struct ws_readers *all = r->connection->server->readers;
    bool ready = r->watched && r->more, later = r->read_at == all->turn;
    list_remove(&r->later);
    if (!ready)
        ws_owner_leave(r->owner, &r->ready);
    else if (later)
        list_append(&all->later, &r->later);
    else
        ws_owner_ready(r->owner, &r->ready);
}

static void ring(struct ws_readers *all)
{
    if (all->rung || (!all->queue.n_ready && list_empty(&all->later)))
        return;
    all->rung = true;
    if (eventfd_write(all->bell, 1) < 0)
        abort(); // only after more turns than there will be
}

// A reader that is not watched is not in the set: otherwise the kernel would report a hang-up all the time.
static void watch(struct ws_reader *r)
{
    struct ws_readers *all = r->connection->server->readers;
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = r};
    bool watched = r->begun && r->wanted;
    if (watched == r->watched)
        return;
    r->watched = watched;
    note_ready(r);
    ring(all);
    int op = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    if (epoll_ctl(all->epoll, op, r->connection->fd, &e) < 0 && watched)
        r->unwatched(r); // ending it is better than never hearing from it
}

void ws_reader_want(struct ws_reader *r, bool wanted)
{
    r->wanted = wanted;
    watch(r);
}

static ssize_t read_socket(struct ws_reader *r, struct iovec into[2])
{
    bool direct = into[0].iov_len > 0;
    if (direct)
        into[1].iov_len = MIN(into[1].iov_len, BUFFER_TAIL); // a frame head or two; all other data goes to its buffer
    struct msghdr m = {.msg_iov = into + !direct, .msg_iovlen = direct ? 2 : 1};
    ssize_t n = recvmsg(r->connection->fd, &m, 0);
    bool none = n < 0 && errno == EAGAIN, interrupted = n < 0 && errno == EINTR;
    size_t room = into[1].iov_len + (direct ? into[0].iov_len : 0);
    r->more = interrupted || (n > 0 && ((size_t)n == room || r->hung_up));
    if (none || interrupted)
        return 0;
    return n ? n : -1;
}

static ssize_t read_tls(struct ws_reader *r, const struct iovec into[2])
{
    const struct iovec *to = &into[into[0].iov_len == 0];
    ERR_clear_error();
    int n = SSL_read(r->ssl, to->iov_base, (int)MIN(to->iov_len, (size_t)INT_MAX));
    int why = n > 0 ? SSL_ERROR_NONE : SSL_get_error(r->ssl, n);
    ERR_clear_error(); // libwebsockets looks at the same queue of errors
    r->more = n > 0;
    if (n > 0)
        return n;
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

ssize_t ws_reader_read(struct ws_reader *r, struct iovec into[2])
{
    return r->ssl ? read_tls(r, into) : read_socket(r, into);
}

static void read_turn(struct ws_reader *r, bool alone)
{
    struct ws_readers *all = r->connection->server->readers;
    size_t bytes = r->read(r, alone);
    bytes = MAX(bytes, BYTES_MIN);
    all->left -= MIN(bytes, all->left);
    r->read_at = all->turn;
    note_ready(r);
    ws_fair_queue_spend(&all->queue, bytes);
}

static void heard_of(struct ws_reader *r, uint32_t events)
{
    r->more = true;
    r->hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    note_ready(r);
}

// Whether the kernel reported any.
static bool ask_kernel(struct ws_readers *all)
{
    struct epoll_event ready[READY_MAX];
    int n = READY_MAX;
    bool any = false;
    for (int i = 0; i < ASKS_A_TURN && n == READY_MAX; i++) {
        n = epoll_wait(all->epoll, ready, READY_MAX, 0);
        for (int k = 0; k < n; k++) {
            struct ws_reader *r = ready[k].data.ptr;
            if (r)
                heard_of(r, ready[k].events);
            all->rung &= r != NULL;
        }
        any |= n > 0;
    }
    return any;
}

// Readers of an earlier turn follow those that the kernel has just reported.
static void read_again(struct ws_readers *all)
{
    struct list batch = LIST_INIT(batch);
    list_splice(&batch, &all->later);
    for (struct list *l; (l = list_pop(&batch));)
        note_ready(CONTAINER_OF(l, struct ws_reader, later));
}

bool ws_readers_look(void *ctx)
{
    const struct ws_server *server = ctx;
    struct ws_readers *all = server->readers;
    struct list *next;
    bool any = ask_kernel(all);
    read_again(all);
    while (all->left && (next = ws_fair_queue_next(&all->queue)))
        read_turn(CONTAINER_OF(next, struct ws_reader, ready), !all->queue.n_ready);
    ring(all);
    return any;
}

static void on_ready(void *ctx, int events)
{
    (void)events;
    (void)ws_readers_look(ctx);
}

// Saves a system call for the head of each record. A silent connection keeps no buffers.
static void tls_begin(struct ws_reader *r)
{
    SSL_set_read_ahead(r->ssl, 1);
    SSL_set_mode(r->ssl, SSL_MODE_RELEASE_BUFFERS);
    r->more = SSL_has_pending(r->ssl);
}

void ws_reader_init(struct ws_reader *r, struct ws_connection *c, size_t (*read)(struct ws_reader *r, bool alone),
                    void (*unwatched)(struct ws_reader *r))
{
    struct ws_readers *all = c->server->readers;
    *r = (struct ws_reader){.connection = c, .read = read, .unwatched = unwatched, .ssl = lws_get_ssl(c->wsi)};
    list_init(&r->ready);
    list_init(&r->later);
    r->owner = ws_fair_queue_owner(&all->queue, "", 1);
    list_append(&all->fresh, &r->fresh);
}

// libwebsockets hands over the bytes that it has read with the request in the same turn. They would be lost if it
// stopped before. It reads nothing else before the next turn.
void ws_readers_begin(struct ws_server *server)
{
    struct ws_readers *all = server->readers;
    all->turn++;
    all->left = BYTES_A_TURN;
    for (struct list *l; (l = list_pop(&all->fresh));) {
        struct ws_reader *r = CONTAINER_OF(l, struct ws_reader, fresh);
        r->begun = true;
        if (r->ssl)
            tls_begin(r);
        lws_rx_flow_control(r->connection->wsi, 0);
        lws_set_timeout(r->connection->wsi, NO_PENDING_TIMEOUT, 0); // it would not notice data that comes in time
        watch(r);
    }
}

void ws_reader_owner(struct ws_reader *r, const char *name, unsigned weight)
{
    struct ws_owner *before = r->owner;
    r->owner = ws_fair_queue_owner(&r->connection->server->readers->queue, name, weight);
    ws_owner_leave(before, &r->ready);
    ws_owner_unref(before);
    note_ready(r);
}

void ws_reader_leave(struct ws_reader *r)
{
    if (!r->connection)
        return;
    list_remove(&r->fresh);
    ws_reader_want(r, false);
}

void ws_reader_done(struct ws_reader *r)
{
    ws_reader_leave(r);
    ws_owner_unref(r->owner);
    *r = (struct ws_reader){0};
}

int ws_readers_new(struct ws_server *server, struct err *err)
{
    struct ws_readers *all = server->readers = xcalloc(1, sizeof *all);
    list_init(&all->fresh);
    list_init(&all->later);
    ws_fair_queue_init(&all->queue);
    all->epoll = epoll_create1(EPOLL_CLOEXEC);
    all->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (all->epoll < 0 || all->bell < 0 ||
        epoll_ctl(all->epoll, EPOLL_CTL_ADD, all->bell, &(struct epoll_event){.events = EPOLLIN | EPOLLET}) < 0)
        return err_set(err, ERR_IO, "no descriptor for the server's connections: %s", strerror(errno));
    all->poll = loop_poll_read(server->loop, all->epoll, on_ready, server, err);
    return all->poll ? 0 : err->code;
}

void ws_readers_free(struct ws_server *server)
{
    struct ws_readers *all = TAKE_PTR(server->readers);
    if (!all)
        return;
    loop_poll_free(all->poll);
    ws_fair_queue_done(&all->queue);
    file_close(&all->epoll);
    file_close(&all->bell);
    free(all);
}
