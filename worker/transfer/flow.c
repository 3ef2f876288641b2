// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/flow.h"

#include "common/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

// Short runs go through `packed`, so that one system call does not get a thousand pieces. Blocks on the device go
// through it, too.
enum {
    PIECES_MAX = 256,
    PICKS_MAX = 8192,
    SHORT = 1024,
    PACKED_MAX = 64 << 10,
    BATCH_MAX = 2 << 20,
    RUN_MAX = 8 << 20
};

struct flow {
    int fd;
    bool out;
    const struct blocks *blocks;
    bool any_on_device;
    struct transfer_cursor cursor;
    // The bytes that are moving now:
    struct iovec pieces[PIECES_MAX];
    size_t n, at; // pieces; those before `at` have moved
    size_t moved; // pieces of the plan that have moved completely
    struct pick picks[PICKS_MAX];
    size_t n_picks, packed_len, packed_max;
    char *packed;
};

struct flow *flow_new(int fd, bool out, const struct blocks *blocks)
{
    struct flow *f = xmalloc(sizeof *f);
    f->fd = fd;
    f->out = out;
    f->blocks = blocks;
    f->any_on_device = blocks_any_on_device(blocks);
    f->packed_max = f->any_on_device ? BATCH_MAX + SHORT : PACKED_MAX;
    f->packed = xmalloc(f->packed_max);
    f->cursor.left = 0;
    f->n = f->at = f->moved = 0;
    return f;
}

void flow_free(struct flow *f)
{
    if (!f)
        return;
    free(f->packed);
    free(f);
}

struct transfer_cursor *flow_cursor(struct flow *f)
{
    return &f->cursor;
}

static bool extends_last(const struct flow *f, const char *data)
{
    return f->n && (char *)f->pieces[f->n - 1].iov_base + f->pieces[f->n - 1].iov_len == data;
}

static void add_piece(struct flow *f, char *data, size_t len)
{
    if (extends_last(f, data))
        f->pieces[f->n - 1].iov_len += len;
    else
        f->pieces[f->n++] = (struct iovec){data, len};
}

static int add(struct flow *f, size_t i, uint64_t at, size_t len, struct err *err)
{
    const struct block *block = &f->blocks->list[i];
    char *data = (char *)block->data + at, *packed = f->packed + f->packed_len;
    int r = 0;
    if (!block->on_device && (len >= SHORT || extends_last(f, data))) {
        add_piece(f, data, len);
        return 0;
    }
    f->picks[f->n_picks++] = (struct pick){i, at, packed, len};
    f->packed_len += len;
    if (f->out && block->on_device)
        r = blocks_download(f->blocks, i, at, packed, len, err);
    else if (f->out)
        memcpy(packed, data, len);
    add_piece(f, packed, len);
    return r;
}

static int fill(struct flow *f, struct err *err)
{
    struct transfer_chunk k;
    size_t bytes = 0;
    int r = 0;
    f->n = f->at = f->n_picks = f->packed_len = 0;
    while (r == 0 && bytes < BATCH_MAX && f->n < PIECES_MAX && f->n_picks < PICKS_MAX &&
           f->packed_len + SHORT <= f->packed_max && transfer_cursor_next(&f->cursor, BATCH_MAX - bytes, &k)) {
        r = f->out ? add(f, k.source, k.from, k.len, err) : add(f, k.destination, k.to, k.len, err);
        bytes += k.len;
    }
    return r;
}

static int advance(struct flow *f, size_t len, struct err *err)
{
    while (len) {
        struct iovec *p = &f->pieces[f->at];
        size_t some = MIN(len, p->iov_len);
        p->iov_base = (char *)p->iov_base + some;
        p->iov_len -= some;
        len -= some;
        f->at += !p->iov_len;
    }
    if (f->at < f->n)
        return 0;
    f->moved = f->cursor.i;
    return f->out ? 0 : blocks_put(f->blocks, f->picks, f->n_picks, err);
}

bool flow_has_work(const struct flow *f)
{
    return f->at < f->n || f->cursor.i < f->cursor.until;
}

size_t flow_moved(const struct flow *f)
{
    return f->moved;
}

int flow_run(struct flow *f, struct err *err)
{
    for (size_t moved = 0; moved < RUN_MAX;) {
        if (f->at == f->n) {
            if (!f->cursor.left)
                return 1;
            if (!flow_has_work(f))
                return 0;
            if (fill(f, err) < 0)
                return err->code;
        }
        struct msghdr m = {.msg_iov = &f->pieces[f->at], .msg_iovlen = f->n - f->at};
        ssize_t n = f->out ? sendmsg(f->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) : recvmsg(f->fd, &m, MSG_DONTWAIT);
        if (n > 0) {
            if (advance(f, (size_t)n, err) < 0)
                return err->code;
            moved += (size_t)n;
        } else if (n == 0) {
            return err_set(err, ERR_GONE, "the connection has ended");
        } else if (errno != EINTR) {
            return errno == EAGAIN ? 0 : err_set(err, ERR_GONE, "%s", strerror(errno));
        }
    }
    return f->at == f->n && !f->cursor.left;
}
