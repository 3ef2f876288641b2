// SPDX-License-Identifier: Apache-2.0
// Memory. Allocations whose size the program chooses abort if there is no memory, because all state is rebuilt from the
// API server after a restart (docs/adr/0001). Data whose size a peer chooses goes through `struct buf` or an arena with
// a limit.
#pragma once

#include <stddef.h>

void *mem_must(void *p) __attribute__((returns_nonnull)); // as it is; NULL: says that there is no memory, and aborts
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n, size_t size) __attribute__((returns_nonnull)); // n * size, overflow aborts
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

// Sets up malloc(): it keeps up to `bytes` of freed memory, and takes more from the kernel in steps of `step`. By
// default, it often gives memory back and takes it again page by page. A block of `block` bytes or more gets its own
// pages. free() gives them back at once, and a block that grows moves without a copy.
void mem_keep(size_t block, size_t bytes, size_t step);

// free() of a `T *` local when it leaves scope: `_cleanup_(free_p) char *s = ...;`
#define _cleanup_(fn) __attribute__((cleanup(fn)))
void free_p(void *pointer_to_pointer);

// Hands the pointer on and forgets it, so that the cleanup above does nothing.
#define TAKE_PTR(p)                    \
    ({                                 \
        __typeof__(p) take_ptr_ = (p); \
        (p) = NULL;                    \
        take_ptr_;                     \
    })

// Makes room for one more element after the first `used` in an array of `size`. The array doubles when it is full.
#define MEM_GROW(array, used, size)                               \
    do {                                                          \
        if ((used) == (size)) {                                   \
            (size) = (size) ? 2 * (size) : 8;                     \
            (array) = xrealloc((array), (size), sizeof *(array)); \
        }                                                         \
    } while (0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
