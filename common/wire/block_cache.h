// SPDX-License-Identifier: Apache-2.0
// Large unused blocks, kept for the next body. The kernel clears and maps a new block page by page, which takes longer
// than receiving its content. Bounded. One thread. Gain: an echo of 1 MiB takes 0.8x of the CPU time over TLS, and
// 0.4x without (bench/calls).
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define BLOCK_CACHE_MIN ((size_t)128 << 10) // smaller blocks are left to malloc()
#define BLOCK_CACHE_OWN ((size_t)1 << 20)   // longer ones are mappings of their own, which move without a copy
#define BLOCK_CACHE_STEP ((size_t)2 << 20)  // bytes to give back in a turn; up to 5 MiB, depending on where blocks end

// So many pieces of a long body wait for a receiver when its sender is told to stop.
enum { BLOCK_CACHE_BLOCKS = 512 };

struct block_cache {
    size_t max_bytes, bytes;
    // Set for a loop whose turns must be short. Blocks that are too many to keep then stay until block_cache_go_on(),
    // which the loop must call. It gives memory back faster than bodies come, so these blocks never take more memory
    // than all bodies took before. New blocks have pages of 4 KiB, because the kernel clears a page at once. For 2 MiB
    // this takes 2.5 ms on a virtual machine whose host took back free memory. If not set, blocks have pages of 2 MiB
    // if the kernel allows it. Clearing these takes a third of the time, and unmapping them a twentieth.
    bool in_steps;
    unsigned n, size;
    struct block_cache_block {
        char *data;
        size_t size;
    } * blocks; // oldest first
};

void block_cache_init(struct block_cache *c, size_t max_bytes);
void block_cache_done(struct block_cache *c);

bool block_cache_is_over(const struct block_cache *c); // it has more than it may keep
void block_cache_go_on(struct block_cache *c);         // gives back a part of the excess

char *block_cache_new(const struct block_cache *c, size_t size); // a new block; c may be NULL
// Makes it longer. A block of BLOCK_CACHE_OWN or more is never copied: the kernel maps its pages elsewhere. A shorter
// block must stay shorter than BLOCK_CACHE_OWN.
char *block_cache_grow(const struct block_cache *c, char *data, size_t size, size_t to);
void block_cache_free(char *data, size_t size);
// A kept block of at least `size` bytes, but not far more. Among equally long ones, it takes the one that was used
// last, which may still be in a cache. NULL if there is none. c may be NULL.
char *block_cache_take(struct block_cache *c, size_t size, size_t *ret_size);
// The largest kept block of at least `size` bytes, for a body that will grow.
char *block_cache_take_largest(struct block_cache *c, size_t size, size_t *ret_size);
// Keeps a block, or gives it back; older blocks make way for it. When memory is short, the kernel may take the pages of
// long blocks, if these pages are long. c may be NULL.
void block_cache_give(struct block_cache *c, char *data, size_t size);
