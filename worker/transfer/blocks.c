// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/blocks.h"

#include "common/base/clock.h"
#include "common/base/mem.h"

#include <string.h>

static int64_t left_ms(const struct blocks *b)
{
    return MAX(b->gpu->until_ms - clock_mono_ms(&clock_system), (int64_t)0);
}

static int waited(int r, struct err *err)
{
    return r == ERR_TIMEOUT ? err_wrap(err, "the time of the transfer is over") : r;
}

bool blocks_any_on_device(const struct blocks *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].on_device)
            return true;
    return false;
}

int blocks_alloc(const struct blocks *b, size_t size, void **ret, struct err *err)
{
    int64_t limit_ms = MIN(left_ms(b), (int64_t)SWEEPER_LIMIT_MS);
    return sweeper_alloc(b->gpu->sweeper, b->gpu->device, size, limit_ms, ret, err);
}

int blocks_fetch(const struct blocks *b, const void *from, void *to, size_t len, struct err *err)
{
    return waited(copier_download(b->gpu->copier, to, from, len, left_ms(b), NULL, err), err);
}

int blocks_download(const struct blocks *b, size_t i, uint64_t at, void *to, size_t len, struct err *err)
{
    return blocks_fetch(b, (char *)b->list[i].data + at, to, len, err);
}

static int upload(const struct blocks *b, size_t i, uint64_t at, const void *from, size_t len, struct err *err)
{
    char *to = (char *)b->list[i].data + at;
    return waited(copier_upload(b->gpu->copier, to, from, len, left_ms(b), NULL, err), err);
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
    return b->gpu ? waited(copier_wait(b->gpu->copier, left_ms(b), NULL, err), err) : 0;
}

int blocks_finish(const struct blocks *b, struct err *err)
{
    return b->gpu ? copier_wait(b->gpu->copier, MAX(left_ms(b), (int64_t)COPIER_LIMIT_MS), NULL, err) : 0;
}

bool blocks_let_go(const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    if (!b->gpu)
        return true;
    int64_t limit_ms = copier_is_late(b->gpu->copier) ? 0 : COPIER_LIMIT_MS;
    return copier_wait(b->gpu->copier, limit_ms, NULL, &ignored) != ERR_TIMEOUT;
}
