// SPDX-License-Identifier: Apache-2.0
#include "common/wire/parts.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void parts_done(struct parts *p)
{
    for (size_t i = 0; i < p->n; i++)
        blob_unref(p->at[i].blob);
    free(p->at);
    *p = (struct parts){0};
}

static void reserve(struct parts *p, size_t more)
{
    if (p->n + more <= p->size)
        return;
    p->size = MAX(p->n + more, 2 * p->size);
    p->at = xrealloc(p->at, p->size, sizeof *p->at);
}

void parts_add(struct parts *p, struct blob *b, size_t offset, size_t len)
{
    reserve(p, 3); // most have a head, a body and an end
    p->at[p->n++] = (struct record_part){b, offset, len};
    p->len += len;
}

void parts_add_copy(struct parts *p, const void *data, size_t len, struct quota *quota)
{
    struct blob *b = blob_copy(data, len, quota);
    parts_add(p, b ? b : blob_copy(data, len, NULL), 0, len);
}

void parts_move(struct parts *p, struct parts *behind)
{
    for (size_t i = 0; i < behind->n; i++)
        parts_add(p, behind->at[i].blob, behind->at[i].offset, behind->at[i].len);
    behind->n = 0;
    parts_done(behind);
}

const char *parts_own(struct parts *p, size_t n, struct quota *quota)
{
    struct record_part *at = &p->at[p->now];
    if (at->blob->area) {
        assert(p->taken == 0);
        struct blob *copy = blob_copy(at->blob->data + at->offset, n, quota);
        if (!copy)
            copy = blob_copy(at->blob->data + at->offset, n, NULL);
        if (n < at->len) {
            reserve(p, 1);
            at = &p->at[p->now];
            memmove(at + 1, at, (p->n++ - p->now) * sizeof *at);
            at[1].offset += n;
            at[1].len -= n;
        } else {
            blob_unref(at->blob);
        }
        *at = (struct record_part){copy, 0, n};
    }
    return at->blob->data + at->offset + p->taken;
}

void parts_rewind(struct parts *p)
{
    p->now = p->taken = 0;
}

const char *parts_look(struct parts *p, size_t *ret_len)
{
    while (p->now < p->n && p->taken == p->at[p->now].len) {
        p->now++;
        p->taken = 0;
    }
    *ret_len = 0;
    if (p->now == p->n)
        return NULL;
    *ret_len = p->at[p->now].len - p->taken;
    return p->at[p->now].blob->data + p->at[p->now].offset + p->taken;
}

void parts_skip(struct parts *p, size_t n)
{
    p->taken += n;
}

size_t parts_read(struct parts *p, char *out, size_t size)
{
    size_t got = 0, n;
    for (const char *from; got < size && (from = parts_look(p, &n)); got += n) {
        n = MIN(n, size - got);
        memcpy(out + got, from, n);
        parts_skip(p, n);
    }
    return got;
}

size_t parts_uncharged(const struct parts *p)
{
    size_t len = 0;
    for (size_t i = 0; i < p->n; i++)
        len += blob_is_charged(p->at[i].blob) ? 0 : p->at[i].len;
    return len;
}
