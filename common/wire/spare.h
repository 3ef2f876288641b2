// SPDX-License-Identifier: Apache-2.0
// Large unused blocks, kept for the next body. The kernel clears and maps a new block page by page, which takes longer
// than receiving its content. Bounded. One thread. Gain: bodies of 60 MiB go through the proxy at 2x the rate without
// TLS (bench/calls).
#pragma once

#include <stddef.h>

#define SPARE_MIN ((size_t)128 << 10) // smaller blocks are left to malloc()
#define SPARE_OWN ((size_t)1 << 20)   // longer ones are mappings of their own, which move without a copy

enum { SPARE_BLOCKS = 512 }; // as many pieces of a long body as wait for a receiver when its sender is told to stop

struct spare {
    size_t max_bytes, bytes;
    unsigned n, size;
    struct spare_block {
        char *data;
        size_t size;
    } * blocks; // oldest first
};

void spare_init(struct spare *s, size_t max_bytes);
void spare_done(struct spare *s);

// A block that is new. One of 16 MiB or more has pages of 2 MiB where the kernel likes that: then it is cleared and
// mapped in a third of the time, and unmapped in a twentieth. Shorter ones have pages of 4 KiB: the kernel clears a
// page at once, which takes 2.5 ms for 2 MiB if the machine is a virtual one whose host took back what was free.
char *spare_new(size_t size);
// Makes it longer. One of SPARE_OWN or more is never copied: the kernel maps its pages elsewhere. A shorter one may
// grow to less than SPARE_OWN only.
char *spare_grow(char *data, size_t size, size_t to);
void spare_free(char *data, size_t size);
// A block of at least `size` bytes, but not far more, likewise; of equals the one that was used last, as it may still
// be in a cache. NULL where none is kept. s may be NULL.
char *spare_take(struct spare *s, size_t size, size_t *ret_size);
// The largest of them, for what will grow.
char *spare_take_largest(struct spare *s, size_t size, size_t *ret_size);
// Keeps a block, or frees it; older ones make way for it. Long ones the kernel may have while memory is
// short. s may be NULL.
void spare_give(struct spare *s, char *data, size_t size);
