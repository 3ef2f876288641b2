// SPDX-License-Identifier: Apache-2.0
// Moves what one rank sends, receives or relays by a plan. A receiver reads the memory of senders and relays in the
// same machine, or a sender writes to its memory where that costs less, and there are connections to the others.
#pragma once

#include "common/transfer/transfer_plan.h"
#include "worker/transfer/blocks.h"
#include "worker/transfer/nccl_flow.h"
#include "worker/transfer/window.h"

#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>

struct mover_progress {               // other threads read it
    atomic_uint_fast64_t done, total; // bytes
};

struct mover_sizes {        // in bytes
    uint64_t step;          // read or written directly at a time
    uint64_t least_written; // by a sender to a receiver; of less, the messages cost more than reading
    uint64_t told;          // of what it has written, a sender tells the receiver so often, and at the end
    uint64_t round;         // moved by NCCL at a time
    uint64_t packed;        // runs that are shorter than this are packed before they go by NCCL
};

extern const struct mover_sizes mover_sizes;

struct mover_config {
    const struct transfer_side *from, *to;
    const struct transfer_plan *plan;
    uint32_t rank; // of this process, in its side
    bool sends;
    bool shows;                        // of a receiver: others may read its memory, and write to its room
    const struct blocks *blocks;       // of this rank: to be sent, or the room for what comes
    const struct window_place *places; // of the senders, for a receiver
    const struct window_place *here;
    const char *const *names;        // of the receivers, then of the senders, for messages
    struct mover_progress *progress; // of a receiver: a sender does not see what is read directly
    const struct mover_sizes *sizes; // NULL = mover_sizes
};

enum mover_way {     // that the bytes of a sender go
    MOVER_READS = 0, // the receiver reads its memory, or gets nothing from it
    MOVER_CONNECTS = 1,
    MOVER_IS_WRITTEN = 2, // the sender writes to the memory of the receiver
    MOVER_USES_NCCL = 3,
};

enum { MOVER_WAITS = INT_MAX };
#define MOVER_CANNOT_WRITE UINT64_MAX // in place of bytes: the receiver is to read

struct mover;

// Of a receiver: it has looked into the memory of all senders that it gets anything from.
struct mover *mover_new(const struct mover_config *config);
void mover_free(struct mover *m);                                 // closes its connections; accepts NULL
enum mover_way mover_way(const struct mover *m, uint32_t sender); // of a receiver
// Of a receiver: where senders write to, in its place.
void mover_show(const struct mover *m, struct window_place *ret);
// Of a sender that has all its connections: it is to write to the memory of this receiver. ERR_UNAVAILABLE: it cannot,
// or it has connections, which are slower and shall not wait.
int mover_write_to(struct mover *m, uint32_t receiver, const struct window_place *where, struct err *err);
// Of a sender: what to tell a receiver, of bytes that were written until now. False: nothing new.
bool mover_wrote(struct mover *m, uint32_t *ret_receiver, uint64_t *ret_bytes);
// Of a receiver, which was told that.
void mover_written(struct mover *m, uint32_t sender, uint64_t bytes);
// What goes by NCCL, in `flow`, which is borrowed: from a sender to this rank, or from this rank to a receiver. `rank`:
// of the other one in the communicator.
void mover_use_nccl_from(struct mover *m, struct nccl_flow *flow, uint32_t sender, int rank);
void mover_use_nccl_to(struct mover *m, struct nccl_flow *flow, uint32_t receiver, int rank);
// From a sender or a relay (as in a plan) to this rank, or from this rank to a receiver. They take the descriptor.
void mover_connect_from(struct mover *m, uint32_t source, int fd);
int mover_connect_to(struct mover *m, uint32_t receiver, int fd, struct err *err);

// A step, of some MiB at most. 1: all that is for this rank is moved, or of a sender, all that it sends; 0: more is
// left. Also after that a receiver has to go on, as it may relay. ERR_GONE with the name of the other rank.
int mover_step(struct mover *m, struct err *err);
// How many ms the next step may wait for what is polled. 0: it has something to do now. MOVER_WAITS: any time.
int mover_waits(struct mover *m, struct pollfd **ret, size_t *ret_n);
// Of a receiver, when all is moved: whether all that was read was good, and is there. ERR_GONE.
int mover_end(struct mover *m, struct err *err);
// Of a receiver: who of those that it gets something from over a connection, or who write to its memory, has given it
// nothing for longest, by the place of its name. -1: it waits for none of them.
int mover_waits_for(const struct mover *m);
// Of a receiver, after the end: no sender writes to its memory from now on. It waits for that, a second at most. False:
// one that stands still, or has not heard of the end, may do so at any time.
bool mover_leave(struct mover *m);
// Of a receiver: bytes that were moved from memory to memory, or came over connections.
uint64_t mover_bytes(const struct mover *m, bool direct);
