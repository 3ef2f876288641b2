// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/local_receiver.h"

#include "common/base/mem.h"
#include "worker/transfer/window_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { RUNS_MAX = 1024 }; // the limit of the kernel for one call

struct runs {
    struct iovec list[RUNS_MAX];
    size_t n;
};

struct local_receiver {
    struct window_view view;
    const struct blocks *from;
    struct runs here, there;
};

int local_receiver_new(const struct window_place *where, const struct window_place *here, const bool *wanted, size_t n,
                       const struct blocks *from, struct local_receiver **ret, struct err *err)
{
    struct local_receiver *l = xmalloc(sizeof *l);
    l->from = from;
    *ret = NULL;
    int r = window_view_open(&l->view, where, here, n, err);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (wanted[i] && l->view.blocks[i].kind != WINDOW_ROOM)
            r = err_set(err, ERR_UNAVAILABLE, "it shows no room for block %zu", i);
    // A process that may read may also write, unless a seccomp profile forbids it.
    if (r == 0 && process_vm_writev(l->view.pid, NULL, 0, NULL, 0, 0) < 0)
        r = err_set(err, ERR_UNAVAILABLE, "writing to its memory: %s", strerror(errno));
    if (r < 0)
        local_receiver_free(l);
    else
        *ret = l;
    return r;
}

void local_receiver_free(struct local_receiver *n)
{
    if (!n)
        return;
    window_view_close(&n->view);
    free(n);
}

static void add(struct runs *runs, uint64_t at, size_t len)
{
    struct iovec *last = runs->n ? &runs->list[runs->n - 1] : NULL;
    if (last && (uintptr_t)last->iov_base + last->iov_len == at)
        last->iov_len += len;
    else
        runs->list[runs->n++] = (struct iovec){(void *)(uintptr_t)at, len};
}

int local_receiver_write(struct local_receiver *n, struct transfer_cursor *c, size_t bytes, struct err *err)
{
    uint64_t before = c->left, until = c->left > bytes ? c->left - bytes : 0;
    struct transfer_chunk k;
    n->here.n = n->there.n = 0;
    while (c->left > until && n->here.n < RUNS_MAX && n->there.n < RUNS_MAX &&
           transfer_cursor_next(c, c->left - until, &k)) {
        add(&n->here, (uintptr_t)n->from->list[k.source].data + k.from, k.len);
        add(&n->there, n->view.blocks[k.destination].at + k.to, k.len);
    }
    if (!window_view_is_there(&n->view))
        return err_set(err, ERR_GONE, "it has ended, or given up");
    ssize_t put = process_vm_writev(n->view.pid, n->here.list, n->here.n, n->there.list, n->there.n, 0);
    if (put != (ssize_t)(before - c->left))
        return err_set(err, ERR_GONE, "writing to its memory: %s", put < 0 ? strerror(errno) : "a part is not there");
    return 0;
}
