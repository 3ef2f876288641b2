// SPDX-License-Identifier: Apache-2.0
// Large unused blocks, kept for the next body. The kernel clears and maps a new block page by page, which takes longer
// than receiving its content. Bounded. One thread. Gain: an echo of 1 MiB takes 0.8x of the CPU time over TLS, and
// 0.4x without (bench/calls).
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SPARE_MIN ((size_t)128 << 10) // smaller blocks are left to malloc()
#define SPARE_OWN ((size_t)1 << 20)   // longer ones are mappings of their own, which move without a copy
#define SPARE_STEP ((size_t)2 << 20)  // what is given back in a turn: up to 5 MiB, as blocks end where they do

enum { SPARE_BLOCKS = 512 }; // as many pieces of a long body as wait for a receiver when its sender is told to stop

struct spare {
    size_t max_bytes, bytes;
    // Of a loop whose turns have to be short. What is too much stays until spare_go_on(), for which the loop has to
    // see; no body comes as fast as that, so it never adds to what all bodies took before. New blocks have pages of 4
    // KiB: the kernel clears a page at once, which takes 2.5 ms for 2 MiB if the machine is a virtual one whose host
    // took back what was free. Without it, they have pages of 2 MiB where the kernel likes that: they are cleared in a
    // third of the time, and unmapped in a twentieth.
    bool in_steps;
    unsigned n, size;
    struct spare_block {
        char *data;
        size_t size;
    } * blocks; // oldest first
};

void spare_init(struct spare *s, size_t max_bytes);
void spare_done(struct spare *s);

bool spare_is_over(const struct spare *s); // it has more than it keeps
void spare_go_on(struct spare *s);         // gives back a part of that

char *spare_new(const struct spare *s, size_t size); // a block that is new; s may be NULL
// Makes it longer. One of SPARE_OWN or more is never copied: the kernel maps its pages elsewhere. A shorter one may
// grow to less than SPARE_OWN only.
char *spare_grow(const struct spare *s, char *data, size_t size, size_t to);
void spare_free(char *data, size_t size);
// A block of at least `size` bytes, but not far more, likewise; of equals the one that was used last, as it may still
// be in a cache. NULL where none is kept. s may be NULL.
char *spare_take(struct spare *s, size_t size, size_t *ret_size);
// The largest of them, for what will grow.
char *spare_take_largest(struct spare *s, size_t size, size_t *ret_size);
// Keeps a block, or gives it back; older ones make way for it. Long ones with long pages the kernel may have while
// memory is short. s may be NULL.
void spare_give(struct spare *s, char *data, size_t size);
