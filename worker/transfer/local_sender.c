// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/local_sender.h"

#include "common/base/mem.h"
#include "worker/transfer/window_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

// Each piece of the other memory costs about as much time as GAP bytes. So short runs with smaller gaps are read
// together with the gaps, and picked out here.
enum { PIECES_MAX = 512, GAP = 1024, SPAN_MAX = 64 << 10, SPANS_MAX = 16 };

struct local_sender_room {
    struct iovec here[PIECES_MAX], there[PIECES_MAX];
    struct pick picks[PIECES_MAX * 16];
    size_t n_pieces, n_picks, n_spans;
    char span[SPANS_MAX * SPAN_MAX];
};

struct local_sender {
    struct window_view view;
    struct device_mapping *mappings; // of blocks on its GPU
    const struct blocks *to;
    bool any_on_device;             // of `to`
    bool in_memory;                 // all wanted blocks of the sender
    struct local_sender_room *room; // borrowed
};

struct local_sender_room *local_sender_room_new(void)
{
    return xmalloc(sizeof(struct local_sender_room)); // memory costs no page fault before the first write
}

static int open_handles(struct local_sender *n, const bool *wanted, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n->view.n; i++) {
        const struct window_block *b = &n->view.blocks[i];
        if (!wanted[i] || b->kind == WINDOW_MEMORY)
            continue;
        n->in_memory = false;
        if (b->kind != WINDOW_HANDLE || !n->to->gpu)
            return err_set(err, ERR_UNAVAILABLE, "memory of its GPU cannot be opened here");
        r = device_import(n->to->gpu->device, &b->handle, &n->mappings[i], err);
    }
    return r;
}

int local_sender_new(const struct window_place *where, const struct window_place *here, const bool *wanted,
                     size_t blocks, const struct blocks *to, struct local_sender_room *room, struct local_sender **ret,
                     struct err *err)
{
    struct local_sender *n = xcalloc(1, sizeof *n);
    *ret = NULL;
    n->to = to;
    n->room = room;
    n->any_on_device = blocks_any_on_device(to);
    n->in_memory = true;
    n->mappings = xcalloc(blocks + 1, sizeof *n->mappings);
    int r = window_view_open(&n->view, where, here, blocks, err);
    if (r == 0)
        r = open_handles(n, wanted, err);
    if (r < 0) {
        local_sender_free(n);
        return r;
    }
    *ret = n;
    return 0;
}

static void close_handles(struct local_sender *n)
{
    if (!n->to->gpu || !blocks_let_go(n->to))
        return;
    for (size_t i = 0; i < n->view.n; i++)
        device_unimport(n->to->gpu->device, &n->mappings[i]);
}

void local_sender_free(struct local_sender *n)
{
    if (!n)
        return;
    close_handles(n);
    window_view_close(&n->view);
    free(n->mappings);
    free(n);
}

// True if the bytes follow the last piece on both sides.
static bool joins_last(const struct local_sender *n, uint64_t at, const char *to)
{
    if (!n->room->n_pieces)
        return false;
    const struct iovec *there = &n->room->there[n->room->n_pieces - 1], *here = &n->room->here[n->room->n_pieces - 1];
    return (uint64_t)(uintptr_t)there->iov_base + there->iov_len == at && (char *)here->iov_base + here->iov_len == to;
}

static bool is_span(const struct local_sender *n)
{
    const char *to = n->room->n_pieces ? n->room->here[n->room->n_pieces - 1].iov_base : NULL;
    return to && to >= n->room->span && to < n->room->span + sizeof n->room->span;
}

// True if the last span can grow to contain these bytes.
static bool reaches(const struct local_sender *n, uint64_t at, size_t len)
{
    const struct iovec *there = &n->room->there[n->room->n_pieces - 1];
    uint64_t from = (uintptr_t)there->iov_base, end = from + there->iov_len;
    return is_span(n) && at >= end && at - end < GAP && at + len - from <= SPAN_MAX;
}

static bool has_room(const struct local_sender *n)
{
    return n->room->n_pieces < PIECES_MAX && n->room->n_picks < ARRAY_LEN(n->room->picks) &&
           n->room->n_spans < SPANS_MAX;
}

static void add(struct local_sender *n, const struct transfer_chunk *k)
{
    const struct block *block = &n->to->list[k->destination];
    char *to = (char *)block->data + k->to;
    uint64_t at = n->view.blocks[k->source].at + k->from;
    if (!block->on_device && joins_last(n, at, to)) {
        n->room->here[n->room->n_pieces - 1].iov_len += k->len;
        n->room->there[n->room->n_pieces - 1].iov_len += k->len;
        return;
    }
    bool picked = k->len < GAP || block->on_device, grows = picked && n->room->n_pieces && reaches(n, at, k->len);
    if (!grows) {
        char *where = picked ? n->room->span + n->room->n_spans++ * SPAN_MAX : to;
        n->room->there[n->room->n_pieces] = (struct iovec){(void *)(uintptr_t)at, k->len};
        n->room->here[n->room->n_pieces++] = (struct iovec){where, k->len};
    }
    struct iovec *there = &n->room->there[n->room->n_pieces - 1], *here = &n->room->here[n->room->n_pieces - 1];
    uint64_t from = (uintptr_t)there->iov_base;
    if (grows)
        there->iov_len = here->iov_len = at + k->len - from;
    if (picked)
        n->room->picks[n->room->n_picks++] =
            (struct pick){k->destination, k->to, (char *)here->iov_base + (at - from), k->len};
}

static int read_pieces(struct local_sender *n, struct err *err)
{
    size_t len = 0;
    for (size_t i = 0; i < n->room->n_pieces; i++)
        len += n->room->here[i].iov_len;
    ssize_t got = process_vm_readv(n->view.pid, n->room->here, n->room->n_pieces, n->room->there, n->room->n_pieces, 0);
    if (got != (ssize_t)len)
        return err_set(err, ERR_GONE, "reading its memory: %s", got < 0 ? strerror(errno) : "a part is not there");
    return blocks_put(n->to, n->room->picks, n->room->n_picks, err);
}

// Copies out of the memory of its GPU.
static int copy_chunk(struct local_sender *n, const struct transfer_chunk *k, struct err *err)
{
    const struct gpu_copier *gpu = n->to->gpu;
    const char *from = (char *)n->mappings[k->source].memory + k->from;
    const struct block *block = &n->to->list[k->destination];
    char *to = (char *)block->data + k->to;
    return block->on_device ? device_copy(gpu->device, to, from, k->len, copier_stream(gpu->copier), err)
                            : blocks_fetch(n->to, from, to, k->len, err);
}

int local_sender_read(struct local_sender *n, struct transfer_cursor *c, size_t bytes, struct err *err)
{
    uint64_t until = c->left > bytes ? c->left - bytes : 0;
    struct transfer_chunk k;
    int r = 0;
    n->room->n_pieces = n->room->n_picks = n->room->n_spans = 0;
    while (r == 0 && c->left > until && has_room(n) &&
           transfer_cursor_next(c, n->any_on_device ? SPAN_MAX : c->left - until, &k)) {
        if (n->view.blocks[k.source].kind == WINDOW_MEMORY)
            add(n, &k);
        else
            r = copy_chunk(n, &k, err);
    }
    return r == 0 && n->room->n_pieces ? read_pieces(n, err) : r;
}

bool local_sender_in_memory(const struct local_sender *n)
{
    return n->in_memory;
}

bool local_sender_may_act(const struct local_sender *n)
{
    return window_view_may_act(&n->view);
}

int local_sender_end(struct local_sender *n, struct err *err)
{
    int r = blocks_settle(n->to, err);
    if (r == 0 && !window_view_is_there(&n->view))
        r = err_set(err, ERR_GONE, "it has ended, or given up");
    close_handles(n);
    return r;
}
