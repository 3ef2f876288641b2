// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/lines.h"

#include "common/base/mem.h"

#include <stdio.h>
#include <string.h>

void lines_init(struct lines *l, const char *prefix)
{
    snprintf(l->prefix, sizeof l->prefix, "%s", prefix);
    l->partial = BUF_INIT(LINES_MAX);
}

void lines_done(struct lines *l)
{
    buf_done(&l->partial);
}

static void put(struct lines *l, const char *data, size_t n, struct buf *out)
{
    size_t start = out->len + strlen(l->prefix);
    if (buf_reserve(out, strlen(l->prefix) + l->partial.len + n + 1) == 0) { // the whole line or nothing
        buf_puts(out, l->prefix);
        buf_append(out, l->partial.data, l->partial.len);
        buf_append(out, data, n);
        buf_putc(out, '\n');
        if (l->heard)
            l->heard(l->ctx, out->data + start, out->len - 1 - start);
    }
    buf_reset(&l->partial);
}

void lines_add(struct lines *l, const char *data, size_t n, struct buf *out)
{
    while (n > 0) {
        size_t room = LINES_MAX - l->partial.len;
        const char *end = memchr(data, '\n', MIN(n, room + 1)); // a full line may still end here
        size_t len = end ? (size_t)(end - data) : MIN(n, room);
        if (end)
            put(l, data, len, out);
        else if (n > room)
            put(l, data, room, out);
        else
            buf_append(&l->partial, data, len);
        data += len + (end != NULL);
        n -= len + (end != NULL);
    }
}

void lines_flush(struct lines *l, struct buf *out)
{
    if (lines_partial(l))
        put(l, "", 0, out);
}
