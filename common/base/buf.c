// SPDX-License-Identifier: Apache-2.0
#include "common/base/buf.h"

#include "common/base/err.h"
#include "common/base/fiber.h"
#include "common/base/mem.h"
#include "common/base/small.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_done(struct buf *b)
{
    small_free(b->data, b->size);
    *b = BUF_INIT(b->cap);
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->over = false;
    if (b->data)
        b->data[0] = '\0';
}

int buf_reserve(struct buf *b, size_t more)
{
    if (b->over || more > b->cap - b->len) {
        b->over = true;
        return ERR_LIMIT;
    }
    size_t need = b->len + more + 1;
    if (need > b->size) {
        size_t size = MAX(b->size, SMALL_SIZE);
        while (size < need)
            size *= 2;
        b->data = b->data ? xrealloc(b->data, size, 1) : small_new(size);
        b->size = size;
    }
    return 0;
}

int buf_append(struct buf *b, const void *p, size_t n)
{
    int r = buf_reserve(b, n);
    if (r < 0)
        return r;
    fiber_copy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
    int r = buf_reserve(b, 1);
    if (r < 0)
        return r;
    b->data[b->len++] = c;
    b->data[b->len] = '\0';
    return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    size_t room = b->data ? b->size - b->len : 0; // it mostly fits
    va_start(ap, fmt);
    int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, ap);
    va_end(ap);
    int r = n < 0 ? ERR_INVALID : buf_reserve(b, (size_t)n);
    if (r < 0) {
        if (room)
            b->data[b->len] = '\0';
        return r;
    }
    if ((size_t)n >= room) {
        va_start(ap, fmt);
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    b->len += (size_t)n;
    return 0;
}

void buf_consume(struct buf *b, size_t n)
{
    if (!n)
        return;
    if (n > b->len)
        abort();
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
    char *s = b->data ? b->data : xstrdup("");
    *b = BUF_INIT(b->cap);
    return s;
}
