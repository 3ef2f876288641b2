// SPDX-License-Identifier: Apache-2.0
// Large blocks that are not used now, kept for the next body: to get one anew from the kernel, which clears and maps it
// page by page, takes longer than to receive what goes into it. Bounded. One thread.
#ifndef CADRE_WIRE_SPARE_H
#define CADRE_WIRE_SPARE_H

#include <stddef.h>

#define SPARE_MIN ((size_t)128 << 10) // smaller blocks are left to malloc()

enum { SPARE_BLOCKS = 32 };

struct spare {
    size_t max_bytes, bytes;
    unsigned n;
    struct spare_block {
        char *data;
        size_t size;
    } blocks[SPARE_BLOCKS]; // oldest first
};

void spare_init(struct spare *s, size_t max_bytes);
void spare_done(struct spare *s);

// A block of at least `size` bytes, to be freed by free() or spare_give(); NULL where none is kept. s may be NULL.
char *spare_take(struct spare *s, size_t size, size_t *ret_size);
// The largest of them, for what will grow.
char *spare_take_largest(struct spare *s, size_t size, size_t *ret_size);
// Keeps a block of malloc(), or frees it; older ones make way for it. s may be NULL.
void spare_give(struct spare *s, char *data, size_t size);

#endif
