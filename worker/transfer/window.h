// SPDX-License-Identifier: Apache-2.0
// A window shows other processes on the same machine where the blocks of its owner are. Senders and relays show their
// blocks, and receivers read them without help from the owner. A receiver that does not relay may show its room, and
// senders write to it.
//
// Each window has a random word. The owner removes the word before it changes the blocks again. A receiver that finds
// the word after its last read therefore knows that all bytes that it has read are valid.
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
    WINDOW_ROOM = 4,   // `at` is the address of a room, and senders write to it
};

struct window_block {
    uint64_t kind, at;
    struct device_handle handle;
};

struct window { // in the memory of its owner; other processes read it there
    uint64_t word[2];
    uint64_t n;
    struct window_block blocks[];
};

struct window_place { // where a process is, and where its window is
    char host[WINDOW_HOST_SIZE];
    uint64_t pids; // the namespace of process ids
    uint32_t pid;
    uint64_t window; // address, 0 = it has none
    uint64_t word[2];
};

struct window *window_new(const struct blocks *b);
struct window *window_new_room(const struct blocks *b);             // all blocks are in memory of the host
void window_end(struct window *w);                                  // removes the word, and frees it; accepts NULL
void window_place(struct window_place *ret);                        // the place of this process, without a window
void window_show(const struct window *w, struct window_place *ret); // puts the window into the place of this process
bool window_place_is_same(const struct window_place *a, const struct window_place *b); // the same process
void window_place_write(const struct window_place *p, char out[WINDOW_PLACE_SIZE]);
void window_place_read(const char in[WINDOW_PLACE_SIZE], struct window_place *ret);
// Returns the places as a plan takes them: a machine is a node, and a container is a pod.
const struct transfer_place *window_places(const struct window_place *p, size_t n, struct arena *a);
