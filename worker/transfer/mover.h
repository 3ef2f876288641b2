// SPDX-License-Identifier: Apache-2.0
// Moves what one rank sends or receives by a plan: reads the memory of senders in the same machine, and has connections
// to the others.
#pragma once

#include "common/transfer/transfer_plan.h"
#include "worker/transfer/blocks.h"
#include "worker/transfer/window.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>

struct mover_progress {               // other threads read it
    atomic_uint_fast64_t done, total; // bytes
};

struct mover_config {
    const struct transfer_side *from, *to;
    const struct transfer_plan *plan;
    uint32_t rank; // of this process, in its side
    bool sends;
    const struct blocks *blocks;       // of this rank: to be sent, or the room for what comes
    const struct window_place *places; // of the senders, for a receiver
    const struct window_place *here;
    const char *const *names;        // of the ranks of the other side, for messages
    struct mover_progress *progress; // of a receiver: a sender does not see what is read directly
};

struct mover;

// Of a receiver: it has looked into the memory of all senders that it gets anything from.
struct mover *mover_new(const struct mover_config *config);
void mover_free(struct mover *m); // closes its connections; accepts NULL
// Whether bytes between this rank and one of the other side need a connection.
bool mover_needs(const struct mover *m, uint32_t other);
void mover_connect(struct mover *m, uint32_t other, int fd); // takes the descriptor

// A step, of some MiB at most. 1: all is moved, 0: more is left. ERR_GONE with the name of the other rank.
int mover_step(struct mover *m, struct err *err);
// False: the next step has something to do without waiting. Else what to poll before it.
bool mover_waits(struct mover *m, struct pollfd **ret, size_t *ret_n);
// Of a receiver, when all is moved: whether all that was read was good, and is there. ERR_GONE.
int mover_end(const struct mover *m, struct err *err);
uint64_t mover_bytes(const struct mover *m, bool direct); // that were read out of memory, or came over connections
