// SPDX-License-Identifier: Apache-2.0
#include "worker/host/lender.h"

#include "common/base/list.h"
#include "common/base/str.h"
#include "common/wire/ref.h"
#include "worker/host/lending.h"
#include "worker/host/rendezvous.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, RETRY_MS = 100, PIECE = 1 << 20 };

struct borrower {
    struct list link;
    struct lender *lender;
    int fd;
    struct loop_poll *poll;
    struct loop_timer *silent;
    char question[LENDING_QUESTION_LEN], head[LENDING_ANSWER_LEN];
    size_t asked; // bytes of the question that have come
    bool answering;
    struct blob *blob;        // of what follows the head
    size_t offset, len, sent; // sent: of head and body together
    // Of values on the device, which come behind that, or are lent until the peer hangs up.
    struct region *values; // NULL = none
    bool lent;
    char *piece; // of them, in memory of the host; NULL = not yet
    size_t piece_at, piece_len;
    struct executor_job job; // copies the next piece
    bool copying, parted;    // parted: it is over when the job is
    struct err why;          // of the job
};

struct lender {
    struct lender_config config;
    struct loop *loop;
    char *secret; // NULL = not known yet
    int fd, port;
    struct loop_poll *poll;
    struct loop_timer *retry; // after running out of descriptors
    struct list borrowers;
    unsigned n;
    uint64_t bytes;
};

static void release(struct borrower *b)
{
    region_unref(b->values);
    free(b->piece);
    free(b);
}

static void part(struct borrower *b)
{
    list_remove(&b->link);
    b->lender->n--;
    loop_poll_free(b->poll);
    loop_timer_free(b->silent);
    if (b->fd >= 0)
        close(b->fd);
    blob_unref(b->blob);
    b->parted = b->copying && !rank_device_withdraw(b->lender->config.device, &b->job);
    if (!b->parted)
        release(b);
}

static void on_silent(void *ctx)
{
    part(ctx);
}

// Answering

static void say(struct borrower *b, struct lending_answer answer, struct blob *blob, size_t offset)
{
    b->answering = true;
    b->blob = blob;
    b->offset = offset;
    b->len = blob->len - offset;
    lending_answer_write(&answer, b->head);
}

static void refuse(struct borrower *b, int code, const char *why)
{
    size_t len = strlen(why);
    say(b, (struct lending_answer){LENDING_BYTES, (uint32_t)-code, len}, blob_copy(why, len, NULL), 0);
}

// The handle of the values, and the head.
static struct blob *lend_values(const struct object *o)
{
    size_t head = o->blob->len - o->offset;
    struct blob *blob = blob_new(DEVICE_HANDLE_SIZE + head, NULL);
    memcpy(blob->data, o->values->handle.bytes, DEVICE_HANDLE_SIZE);
    memcpy(blob->data + DEVICE_HANDLE_SIZE, o->blob->data + o->offset, head);
    return blob;
}

static void give(struct borrower *b, const struct object *o, uint32_t place)
{
    struct lending_answer answer = {.len = o->len};
    if (o->values) {
        b->values = region_ref(o->values);
        b->lent = o->values->shared && place == rank_device_place(b->lender->config.device);
        answer.form = b->lent ? LENDING_HANDLE : place != LENDING_NO_GPU ? LENDING_VALUES : LENDING_BYTES;
    }
    if (b->lent)
        say(b, answer, lend_values(o), 0);
    else
        say(b, answer, blob_ref(o->blob), o->offset);
}

// The connection is the rendezvous's from now on: nothing more is read of it here.
static void hand_over(struct borrower *b, const struct lending_guest *g)
{
    char head[LENDING_ANSWER_LEN];
    lending_answer_write(&(struct lending_answer){LENDING_BYTES, 0, 0}, head);
    loop_poll_free(TAKE_PTR(b->poll));
    if (send(b->fd, head, sizeof head, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof head)
        rendezvous_join(b->lender->config.rendezvous, b->fd, g);
    else
        close(b->fd);
    b->fd = -1;
}

static void answer(struct borrower *b)
{
    const struct lender *l = b->lender;
    struct lending_question q;
    struct lending_guest g;
    struct err err = ERR_INIT;
    if (l->config.rendezvous && lending_guest_read(b->question, &g) == 0) {
        if (rendezvous_admits(l->secret, &g, &err))
            hand_over(b, &g);
        else
            refuse(b, err.code, err.msg);
    } else if (lending_question_read(b->question, &q) < 0) {
        refuse(b, ERR_PROTO, "this is not a request for an object");
    } else if (!l->secret) {
        refuse(b, ERR_UNAVAILABLE, "this worker does not know the group's keys yet");
    } else if (!ref_key_good(l->secret, q.id, q.until, q.key, sizeof q.key)) {
        refuse(b, ERR_FORBIDDEN, "the key does not fit the object");
    } else if (q.until < clock_wall_ms(&clock_system)) {
        refuse(b, ERR_FORBIDDEN, "the key has expired: the call waited too long, or clocks differ");
    } else {
        const struct object *o = store_get(l->config.store, q.id);
        if (o)
            give(b, o, q.place);
        else
            refuse(b, ERR_NOT_FOUND, "it was freed");
    }
}

// Values on the device: the next piece of them.

static void copy_piece(struct executor_job *job)
{
    struct borrower *b = CONTAINER_OF(job, struct borrower, job);
    b->piece_at += b->piece_len;
    b->piece_len = MIN((size_t)PIECE, b->values->len - b->piece_at);
    (void)rank_device_download(b->values->owner, b->piece, (char *)b->values->memory + b->piece_at, b->piece_len, NULL,
                               &b->why);
}

static void on_borrower(void *ctx, int events);

static void piece_copied(struct executor_job *job)
{
    struct borrower *b = CONTAINER_OF(job, struct borrower, job);
    b->copying = false;
    if (b->why.code == ERR_GONE)
        rank_device_lost(b->values->owner, b->why.msg);
    if (b->parted)
        release(b);
    else if (b->why.code < 0)
        part(b); // the borrower sees that it lacks the rest
    else
        on_borrower(b, 0);
}

static void begin_piece(struct borrower *b)
{
    if (!b->piece)
        b->piece = xmalloc(MIN((size_t)PIECE, b->values->len));
    b->why = ERR_INIT;
    b->copying = true;
    b->job = (struct executor_job){.run = copy_piece, .done = piece_copied};
    rank_device_submit(b->lender->config.device, &b->job);
}

// False: the connection is over.
static bool write_values(struct borrower *b)
{
    size_t before = sizeof b->head + b->len;
    while (b->sent < before + b->values->len) {
        size_t at = b->sent - before - b->piece_at;
        if (at == b->piece_len) {
            begin_piece(b);
            return true;
        }
        ssize_t n = send(b->fd, b->piece + at, b->piece_len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        b->sent += (size_t)n;
        b->lender->bytes += (uint64_t)n;
        loop_timer_arm(b->silent, LENDER_SILENT_MS);
    }
    return false;
}

// False: the connection is over.
static bool write_more(struct borrower *b)
{
    size_t head = sizeof b->head, total = head + b->len;
    while (b->sent < total) {
        size_t in_body = b->sent > head ? b->sent - head : 0;
        struct iovec parts[2] = {{b->head + MIN(b->sent, head), head - MIN(b->sent, head)},
                                 {b->blob->data + b->offset + in_body, b->len - in_body}};
        const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = sendmsg(b->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        b->sent += (size_t)n;
        b->lender->bytes += (uint64_t)n;
        loop_timer_arm(b->silent, LENDER_SILENT_MS);
    }
    return b->lent || (b->values && write_values(b));
}

// The peer has the handle.
static bool is_lent(const struct borrower *b)
{
    return b->lent && b->sent == sizeof b->head + b->len;
}

// It hangs up when it has copied the values, and says nothing before that.
static bool is_there(const struct borrower *b)
{
    char byte;
    return recv(b->fd, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR);
}

// True: go on.
static bool read_more(struct borrower *b)
{
    ssize_t n = recv(b->fd, b->question + b->asked, sizeof b->question - b->asked, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    b->asked += (size_t)n;
    if (b->asked == sizeof b->question)
        answer(b);
    return true;
}

static void on_borrower(void *ctx, int events)
{
    struct borrower *b = ctx;
    struct err err = ERR_INIT;
    (void)events;
    bool on = b->answering || read_more(b);
    if (on && is_lent(b))
        on = is_there(b);
    else if (on && b->answering)
        on = write_more(b);
    on = on && b->fd >= 0;
    int wanted = b->copying ? 0 : b->answering && !is_lent(b) ? LOOP_WRITE : LOOP_READ;
    if (!on || loop_poll_set(b->poll, wanted, &err) < 0)
        part(b);
}

// Connections

static void take(struct lender *l, int fd)
{
    struct err err = ERR_INIT;
    struct borrower *b = xcalloc(1, sizeof *b);
    *b = (struct borrower){.lender = l, .fd = fd};
    b->poll = loop_poll_new(l->loop, fd, on_borrower, b);
    b->silent = loop_timer_new(l->loop, on_silent, b);
    list_append(&l->borrowers, &b->link);
    l->n++;
    loop_timer_arm(b->silent, LENDER_SILENT_MS);
    if (loop_poll_set(b->poll, LOOP_READ, &err) < 0)
        part(b);
}

// A peer that has asked for nothing makes room: a borrower asks at once.
static void drop_silent(struct lender *l)
{
    LIST_FOREACH(i, &l->borrowers) {
        struct borrower *b = CONTAINER_OF(i, struct borrower, link);
        if (!b->answering) {
            part(b);
            return;
        }
    }
}

static void on_connection(void *ctx, int events)
{
    struct lender *l = ctx;
    struct err err = ERR_INIT;
    int fd;
    (void)events;
    while ((fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (l->n >= LENDER_CONNECTIONS_MAX)
            drop_silent(l);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (l->n < LENDER_CONNECTIONS_MAX)
            take(l, fd);
        else
            close(fd);
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return;
    loop_poll_set(l->poll, 0, &err); // no descriptors: it would be readable all the time
    loop_timer_arm(l->retry, RETRY_MS);
}

static void on_retry(void *ctx)
{
    struct lender *l = ctx;
    struct err err = ERR_INIT;
    loop_poll_set(l->poll, LOOP_READ, &err);
}

static int bind_to(int family, const struct sockaddr *address, socklen_t len)
{
    int on = 1, off = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, address, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

// Of both families where there are both.
static int open_socket(bool local, int port)
{
    const struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = IN6ADDR_ANY_INIT};
    const struct sockaddr_in v4 = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY)};
    int fd = local ? -1 : bind_to(AF_INET6, (const struct sockaddr *)&v6, sizeof v6);
    return fd >= 0 ? fd : bind_to(AF_INET, (const struct sockaddr *)&v4, sizeof v4);
}

static int port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&at)->sin6_port
                                          : ((const struct sockaddr_in *)&at)->sin_port);
}

struct lender *lender_new(const struct lender_config *config, struct err *err)
{
    int fd = open_socket(config->local, config->port);
    if (fd < 0) {
        err_set(err, ERR_UNAVAILABLE, "cannot listen for other workers on port %d: %s", config->port, strerror(errno));
        return NULL;
    }
    struct lender *l = xcalloc(1, sizeof *l);
    *l = (struct lender){.config = *config, .loop = config->loop, .fd = fd, .port = port_of(fd)};
    list_init(&l->borrowers);
    l->poll = loop_poll_new(l->loop, fd, on_connection, l);
    l->retry = loop_timer_new(l->loop, on_retry, l);
    if (loop_poll_set(l->poll, LOOP_READ, err) < 0) {
        lender_free(l);
        return NULL;
    }
    return l;
}

void lender_free(struct lender *l)
{
    if (!l)
        return;
    LIST_FOREACH(b, &l->borrowers)
        part(CONTAINER_OF(b, struct borrower, link));
    loop_poll_free(l->poll);
    loop_timer_free(l->retry);
    close(l->fd);
    free(l->secret);
    free(l);
}

int lender_port(const struct lender *l)
{
    return l->port;
}

void lender_secret(struct lender *l, const char *secret)
{
    if (str_eq(l->secret, secret))
        return;
    free(l->secret);
    l->secret = xstrdup(secret);
}

uint64_t lender_bytes(const struct lender *l)
{
    return l->bytes;
}
