// SPDX-License-Identifier: Apache-2.0
#include "common/base/arena.h"

#include "common/base/fiber.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// malloc() keeps blocks of up to 1032 bytes for each thread in glibc. The first block fits in one, with its head.
enum { ARENA_ALIGN = 16, ARENA_FIRST = 992, ARENA_LARGEST = 64 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t size;
    size_t used;
    bool lent; // memory of the caller
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

void arena_init(struct arena *a, size_t first_block)
{
    *a = (struct arena){.next_block = first_block};
}

void arena_init_in(struct arena *a, void *memory, size_t size)
{
    struct arena_block *b = memory;
    assert((uintptr_t)memory % ARENA_ALIGN == 0 && size > sizeof *b);
    *b = (struct arena_block){.size = size - sizeof *b, .lent = true};
    *a = (struct arena){.head = b};
}

void arena_done(struct arena *a)
{
    for (struct arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        if (!b->lent)
            free(b);
    }
    *a = ARENA_INIT;
}

static struct arena_block *block_for(struct arena *a, size_t size)
{
    size_t want = a->next_block ? a->next_block : ARENA_FIRST;
    if (want < size)
        want = size;
    struct arena_block *b = xmalloc(sizeof *b + want);
    *b = (struct arena_block){.next = a->head, .size = want};
    a->head = b;
    a->next_block = MIN(want * 2, (size_t)ARENA_LARGEST);
    return b;
}

// Does not clear the memory. `align` is a power of two. A full block ends at a multiple of ARENA_ALIGN, also in
// `a->used`, so `a->used` is the size that a single block would need.
static void *take(struct arena *a, size_t size, size_t align)
{
    if (size > SIZE_MAX / 2)
        abort();
    struct arena_block *b = a->head;
    size_t gap = b ? -b->used & (align - 1) : 0;
    if (!b || b->size - b->used < size + gap) {
        a->used += -a->used & (ARENA_ALIGN - 1);
        b = block_for(a, size);
        gap = 0;
    }
    void *p = b->data + b->used + gap;
    b->used += size + gap;
    a->used += size + gap;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    void *p = take(a, size, ARENA_ALIGN);
    fiber_zero(p, size);
    return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total))
        abort();
    return arena_alloc(a, total);
}

const char *arena_clip(struct arena *a, const char *s, size_t max)
{
    if (!s || strlen(s) <= max)
        return s;
    size_t n = 0, step;
    while ((step = str_utf8_len(s + n, max - n)) > 0)
        n += step;
    return arena_strndup(a, s, n);
}

void *arena_memdup(struct arena *a, const void *p, size_t n)
{
    void *copy = take(a, n, ARENA_ALIGN);
    fiber_copy(copy, p, n);
    return copy;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *copy = take(a, n + 1, 1); // many are short
    fiber_copy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
    struct arena_block *b = a->head;
    size_t room = b ? b->size - b->used : 0;
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(room ? (char *)b->data + b->used : NULL, room, fmt, again);
    va_end(again);
    size_t size = n < 0 ? 1 : (size_t)n + 1;
    char *s = take(a, size, 1);
    if (size > room) // otherwise vsnprintf() has written it already
        (void)vsnprintf(s, size, fmt, ap);
    if (n < 0)
        s[0] = '\0';
    return s;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}
