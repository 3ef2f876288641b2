// SPDX-License-Identifier: Apache-2.0
// Moves the bytes that one rank sends, receives or relays by a plan. A receiver reads the memory of senders and relays
// on the same machine. A sender writes to the memory of the receiver if that costs less. Other pairs use NCCL, or a
// connection.
//
// A mover belongs to a sender or to a receiver, as its config says. One thread uses it.
#pragma once

#include "common/transfer/transfer_plan.h"
#include "worker/transfer/blocks.h"
#include "worker/transfer/nccl_flow.h"
#include "worker/transfer/window.h"

#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>

struct mover_progress {               // other threads may read it
    atomic_uint_fast64_t done, total; // bytes
};

struct mover_sizes {        // in bytes
    uint64_t step;          // a rank reads or writes this much of another rank's memory at a time
    uint64_t least_written; // a sender writes at least this much; for less, its messages cost more than reading does
    uint64_t told;          // after each part of this size, a sender tells the receiver how much it has written
    uint64_t round;         // a rank moves this much by NCCL at a time
    uint64_t packed;        // shorter runs are packed before they go by NCCL
};

extern const struct mover_sizes mover_sizes;

struct mover_config {
    const struct transfer_side *from, *to;
    const struct transfer_plan *plan;
    uint32_t rank; // of this process, in its side
    bool sends;
    bool shows;                        // a receiver lets other ranks read its memory, and write to its room
    const struct blocks *blocks;       // a sender sends them; a receiver has room for the new weights there
    const struct window_place *places; // of the senders; only a receiver needs them
    const struct window_place *here;
    const char *const *names;        // of the receivers, then of the senders, for messages
    struct mover_progress *progress; // of a receiver; a sender does not see what others read from its memory
    const struct mover_sizes *sizes; // NULL = mover_sizes
};

enum mover_way {     // how the bytes of a sender get to a receiver
    MOVER_READS = 0, // the receiver reads the memory of the sender, or gets nothing from it
    MOVER_CONNECTS = 1,
    MOVER_IS_WRITTEN = 2, // the sender writes to the memory of the receiver
    MOVER_USES_NCCL = 3,
};

enum { MOVER_WAITS = INT_MAX };
#define MOVER_CANNOT_WRITE UINT64_MAX // a number of bytes that means: the sender cannot write, so the receiver reads

struct mover;

// A receiver opens the memory of its senders here, so that mover_way() can say which ones it can read.
struct mover *mover_new(const struct mover_config *config);
void mover_free(struct mover *m);                                 // closes its connections; accepts NULL
enum mover_way mover_way(const struct mover *m, uint32_t sender); // only a receiver knows it
// Returns the place of a receiver, with the window that shows senders where to write.
void mover_show(const struct mover *m, struct window_place *ret);
// Lets a sender write to the memory of this receiver. Call it after all connections are there. ERR_UNAVAILABLE: the
// sender may not write there. Or it has connections: these are slower, and would have to wait for the writes.
int mover_write_to(struct mover *m, uint32_t receiver, const struct window_place *where, struct err *err);
// Returns the next receiver that a sender has to tell about its writes, and how many bytes it has written to that
// receiver so far. False: there is no news.
bool mover_wrote(struct mover *m, uint32_t *ret_receiver, uint64_t *ret_bytes);
// Call this on a receiver when that message arrives.
void mover_written(struct mover *m, uint32_t sender, uint64_t bytes);
// The bytes from a sender to this rank, or from this rank to a receiver, go by NCCL, as a pair of `flow`. The mover
// borrows the flow. `rank`: of the other side in the communicator.
void mover_use_nccl_from(struct mover *m, struct nccl_flow *flow, uint32_t sender, int rank);
void mover_use_nccl_to(struct mover *m, struct nccl_flow *flow, uint32_t receiver, int rank);
// The bytes from a sender or a relay (numbered as in a plan) to this rank, or from this rank to a receiver, use this
// connection. The mover owns the descriptor from now on.
void mover_connect_from(struct mover *m, uint32_t source, int fd);
int mover_connect_to(struct mover *m, uint32_t receiver, int fd, struct err *err);

// Moves up to some MiB, without waiting. Returns 1 if all bytes of this rank have moved: all that a receiver gets, or
// all that a sender sends. Returns 0 if bytes are left. A receiver has to continue after that, because it may relay.
// ERR_GONE with the name of the other rank; ERR_IO from NCCL.
int mover_step(struct mover *m, struct err *err);
// Returns the descriptors to poll before the next step, and how many ms to poll them at most. 0: the next step has work
// now. MOVER_WAITS: only the descriptors bring work.
int mover_waits(struct mover *m, struct pollfd **ret, size_t *ret_n);
// Call this on a receiver when all bytes have moved. It checks that all bytes that it has read were valid, and waits
// until they are in place. ERR_GONE.
int mover_end(struct mover *m, struct err *err);
// Returns the sender or relay that has given a receiver nothing for the longest time, as an index of `names`. Only
// those count that use a connection, or that write to the memory of the receiver. -1: the receiver waits for none of
// them.
int mover_waits_for(const struct mover *m);
// Call this on a receiver after the end. It waits, at most a second, until no sender can write to its memory any more.
// False: a sender stands still, or has not heard of the end, and may still write at any time.
bool mover_leave(struct mover *m);

struct mover_bytes { // that a receiver got
    uint64_t direct; // from memory to memory
    uint64_t nccl;   // by NCCL
    uint64_t sent;   // over connections
};

struct mover_bytes mover_bytes(const struct mover *m);
