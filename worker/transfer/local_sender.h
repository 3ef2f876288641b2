// SPDX-License-Identifier: Apache-2.0
// A sender or a relay on the same machine. This process reads its memory with one copy, straight to the place of the
// values. From GPU to GPU, the driver copies (CUDA IPC).
#pragma once

#include "common/base/err.h"
#include "common/transfer/transfer_cursor.h"
#include "worker/transfer/window.h"

#include <stdbool.h>

struct local_sender;
struct local_sender_room; // memory for one read; several local senders use it, one after the other

struct local_sender_room *local_sender_room_new(void); // for free()
// ERR_UNAVAILABLE: the sender is elsewhere, or this process may not read its memory or the memory of its GPU. `wanted`:
// a flag for each of its n blocks, true if this process reads it. `to`: the blocks of the receiver. The room is
// borrowed.
int local_sender_new(const struct window_place *where, const struct window_place *here, const bool *wanted, size_t n,
                     const struct blocks *to, struct local_sender_room *room, struct local_sender **ret,
                     struct err *err);
void local_sender_free(struct local_sender *n); // accepts NULL
// Reads about as many bytes as this, or fewer if the cursor has fewer left. ERR_GONE: the sender has died.
int local_sender_read(struct local_sender *n, struct transfer_cursor *c, size_t bytes, struct err *err);
// Call this after the last read. It waits until all bytes are in place, and checks that they were valid. ERR_GONE.
int local_sender_end(struct local_sender *n, struct err *err);
bool local_sender_in_memory(const struct local_sender *n); // all wanted blocks are in memory of the host
bool local_sender_may_act(const struct local_sender *n);   // the sender has neither ended nor left the transfer
