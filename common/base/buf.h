// SPDX-License-Identifier: Apache-2.0
// A growing byte buffer with a mandatory limit, so that data whose size a peer chooses cannot grow without bound.
// Always NUL-terminated after `len`. A write above the limit changes nothing, marks the buffer `over`, and all later
// writes fail, too.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; // NULL until the first byte
    size_t len;
    size_t size; // allocated
    size_t cap;  // most bytes it may hold
    bool over;
};

#define BUF_INIT(max) ((struct buf){.cap = (max)})

void buf_done(struct buf *b);  // frees; keeps the cap, may be used again
void buf_reset(struct buf *b); // empties, keeps the memory
int buf_reserve(struct buf *b, size_t more);
int buf_append(struct buf *b, const void *p, size_t n); // 0 or ERR_LIMIT
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_consume(struct buf *b, size_t n); // drops n bytes at the front
const char *buf_str(const struct buf *b);  // never NULL
char *buf_take(struct buf *b);             // the caller frees; the buffer is empty again
