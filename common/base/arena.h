// SPDX-License-Identifier: Apache-2.0
// An arena: many small allocations with one lifetime (a reconcile, a decoded object). Nothing in it is freed alone.
// Memory is zeroed. Not thread-safe.
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *head;
    size_t used; // bytes handed out, for accounting
    size_t next_block;
};

#define ARENA_INIT ((struct arena){0})

void arena_init(struct arena *a, size_t first_block); // first_block 0 = a default
// Uses the caller's memory first. This memory must outlive the arena's contents, be aligned for any type, and have a
// few dozen bytes at least.
void arena_init_in(struct arena *a, void *memory, size_t size);
void arena_done(struct arena *a); // frees everything; the arena may be used again

void *arena_alloc(struct arena *a, size_t size) __attribute__((returns_nonnull));
void *arena_array(struct arena *a, size_t n, size_t size) __attribute__((returns_nonnull)); // n = 0 is fine
#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
char *arena_strdup(struct arena *a, const char *s); // NULL stays NULL
char *arena_strndup(struct arena *a, const char *s, size_t n);
// At most `max` bytes of s, cut between two characters; a string that is cut also ends before the first byte that is
// not UTF-8. Returns s itself or a copy. NULL stays NULL.
const char *arena_clip(struct arena *a, const char *s, size_t max);
void *arena_memdup(struct arena *a, const void *p, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
