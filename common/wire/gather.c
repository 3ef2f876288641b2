// SPDX-License-Identifier: Apache-2.0
#include "common/wire/gather.h"

#include "common/base/mem.h"

#include <assert.h>

void gather_init(struct gather *g)
{
    g->len = 0;
    g->at = g->n = 0;
}

bool gather_takes(const struct gather *g)
{
    return g->n + 2 < GATHER_PIECES;
}

void gather_add(struct gather *g, const void *data, size_t len, struct blob *blob)
{
    assert(g->n < GATHER_PIECES);
    g->iov[g->n] = (struct iovec){(void *)data, len};
    g->blobs[g->n++] = blob ? blob_ref(blob) : NULL;
    g->len += len;
}

void gather_lead(struct gather *g, size_t n)
{
    assert(g->n && !g->at && !g->blobs[0]);
    g->iov[0].iov_base = (char *)g->iov[0].iov_base - n;
    g->iov[0].iov_len += n;
    g->len += n;
}

void gather_sent(struct gather *g, size_t n)
{
    assert(n <= g->len);
    g->len -= n;
    while (g->at < g->n) {
        struct iovec *v = &g->iov[g->at];
        size_t take = MIN(n, v->iov_len);
        v->iov_base = (char *)v->iov_base + take;
        v->iov_len -= take;
        n -= take;
        if (v->iov_len)
            return;
        blob_unref(g->blobs[g->at++]);
    }
}

void gather_own(struct gather *g, const struct blob *b)
{
    for (unsigned i = g->at; i < g->n; i++) {
        if (g->blobs[i] != b)
            continue;
        struct blob *copy = blob_copy(g->iov[i].iov_base, g->iov[i].iov_len, NULL);
        g->iov[i].iov_base = copy->data;
        blob_unref(g->blobs[i]);
        g->blobs[i] = copy;
    }
}

void gather_done(struct gather *g)
{
    gather_sent(g, g->len);
    gather_init(g);
}
