// SPDX-License-Identifier: Apache-2.0
// A sender or a relay in the same machine, whose memory this process reads: one copy, from there to where the values
// belong. From GPU to GPU, the driver copies (CUDA IPC).
#pragma once

#include "common/base/err.h"
#include "common/transfer/transfer_cursor.h"
#include "worker/transfer/window.h"

#include <stdbool.h>

struct local_sender;
struct local_sender_room; // of what is read at a time; for any number of local senders, one after the other

struct local_sender_room *local_sender_room_new(void); // for free()
// ERR_UNAVAILABLE: it is elsewhere, or this process may not read its memory, or its GPU's. `wanted`: which of
// its n blocks are to be read. `to`: the blocks of the receiver. The room is borrowed.
int local_sender_new(const struct window_place *where, const struct window_place *here, const bool *wanted, size_t n,
                     const struct blocks *to, struct local_sender_room *room, struct local_sender **ret,
                     struct err *err);
void local_sender_free(struct local_sender *n); // accepts NULL
// Reads about as many bytes of those that the cursor has left. ERR_GONE: it has died.
int local_sender_read(struct local_sender *n, struct transfer_cursor *c, size_t bytes, struct err *err);
// After the last read: what was read was the other's all the time, and is there. ERR_GONE. Nothing is read any more.
int local_sender_end(struct local_sender *n, struct err *err);
bool local_sender_in_memory(const struct local_sender *n); // all that is wanted is in memory of the host
bool local_sender_may_act(const struct local_sender *n);   // it has neither ended nor left the transfer
