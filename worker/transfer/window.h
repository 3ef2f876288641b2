// SPDX-License-Identifier: Apache-2.0
// What a sender, or a receiver that relays, shows to receivers on the same machine: where its blocks are. They read
// them out of its memory, without its help. A receiver that does not relay may show its room to senders, which write to
// it. The window has a word that only this transfer has, and that is gone before
// its owner changes these blocks again. So a receiver that finds the word after its last read knows that all it has
// read was good.
#pragma once

#include "common/base/arena.h"
#include "common/transfer/transfer_side.h"
#include "worker/transfer/blocks.h"

#include <stdbool.h>

enum { WINDOW_HOST_SIZE = 16, WINDOW_PLACE_SIZE = WINDOW_HOST_SIZE + 36 };

enum window_kind {
    WINDOW_MEMORY = 1, // `at` is its address
    WINDOW_HANDLE = 2, // on the device: `handle` opens it
    WINDOW_HIDDEN = 3, // on the device, and nobody else can open it
    WINDOW_ROOM = 4,   // `at` is its address, and it is to be written to
};

struct window_block {
    uint64_t kind, at;
    struct device_handle handle;
};

struct window { // as it lies in the memory of its owner
    uint64_t word[2];
    uint64_t n;
    struct window_block blocks[];
};

struct window_place { // where a process is, and its window there
    char host[WINDOW_HOST_SIZE];
    uint64_t pids; // the namespace of process ids
    uint32_t pid;
    uint64_t window; // address, 0 = it has none
    uint64_t word[2];
};

struct window *window_new(const struct blocks *b);
struct window *window_new_room(const struct blocks *b);             // all are in memory of the host
void window_end(struct window *w);                                  // frees it; accepts NULL
void window_place(struct window_place *ret);                        // of this process, which shows nothing yet
void window_show(const struct window *w, struct window_place *ret); // in a place of this process
bool window_place_is_same(const struct window_place *a, const struct window_place *b); // the same process
void window_place_write(const struct window_place *p, char out[WINDOW_PLACE_SIZE]);
void window_place_read(const char in[WINDOW_PLACE_SIZE], struct window_place *ret);
// As a plan takes them: machines are nodes, containers are pods.
const struct transfer_place *window_places(const struct window_place *p, size_t n, struct arena *a);
