// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/blocks.h"

#include <string.h>

bool blocks_any_on_device(const struct blocks *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].on_device)
            return true;
    return false;
}

int blocks_download(const struct blocks *b, size_t i, uint64_t at, void *to, size_t len, struct err *err)
{
    return copier_download(b->gpu->copier, to, (char *)b->list[i].data + at, len, NULL, err);
}

static int upload(const struct blocks *b, size_t i, uint64_t at, const void *from, size_t len, struct err *err)
{
    return copier_upload(b->gpu->copier, (char *)b->list[i].data + at, from, len, NULL, err);
}

int blocks_put(const struct blocks *b, const struct pick *picks, size_t n, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        const struct pick *p = &picks[i];
        const struct block *block = &b->list[p->block];
        if (block->on_device)
            r = upload(b, p->block, p->at, p->packed, p->len, err);
        else
            memcpy((char *)block->data + p->at, p->packed, p->len);
    }
    return r;
}

int blocks_settle(const struct blocks *b, struct err *err)
{
    return b->gpu ? copier_wait(b->gpu->copier, NULL, err) : 0;
}
