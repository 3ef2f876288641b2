// SPDX-License-Identifier: Apache-2.0
// The messages between the members of a transfer, and the connections for them. Member 0, the center, has a connection
// to each other member. The witness also has a connection to each receiver.
//
//   member -> center     GPU       before HELLO, if its weights can move by NCCL (nccl_join.h)
//   member -> center     HELLO     u64 hash of its side, its place; rank 0 of a group adds the side
//   center -> member     ALL       u32 length of the senders' side, the side, u32 length of the receivers' side, the
//                                  side, the places of all members
//   receiver -> center   NEEDS     how it gets its bytes from each sender (routes.h)
//   center -> member     JOIN      a communicator of NCCL (nccl_join.h)
//   member -> center     JOINED    u32 code, text: why it could not; 0 = it has joined
//   center -> member     GO        the member that is the witness, and the NEEDS of all receivers
//   member -> center     HERE      the member waits for NCCL, and is alive; in the second half of its time
//   receiver -> center   WAITS     u32 member that gives it nothing, all ones = none; in the second half of its time
//   sender -> center     WROTE     u32 receiver, u64 bytes written to its memory, all ones = the sender cannot write
//   center -> receiver   WROTE     u32 sender, u64 bytes
//   receiver -> center   READY     the receiver has all of its weights
//   member -> center     FAILED    u32 code, text: the member gives up
//   center -> witness    PROPOSE   the center wants to take the new weights
//   receiver -> witness  ASK       the receiver asks for the decision
//   receiver -> witness  OVER      the receiver has heard the decision, and will not ask
//   both ways            AGAIN     u64 number of the transfer; earlier messages belong to an earlier transfer
//   center -> member, witness -> center or receiver   DECISION   u32 enum commit_decision, u32 code, text: why not
#pragma once

#include "common/base/err.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dialog_kind {
    DIALOG_LOST = 0, // not sent: the connection has ended
    DIALOG_HELLO = 32,
    DIALOG_ALL,
    DIALOG_NEEDS,
    DIALOG_GO,
    DIALOG_WAITS,
    DIALOG_READY,
    DIALOG_FAILED,
    DIALOG_PROPOSE,
    DIALOG_ASK,
    DIALOG_DECISION,
    DIALOG_OVER,
    DIALOG_AGAIN, // dialog_next() returns it without a body in place of messages of an earlier transfer
    DIALOG_WROTE,
    DIALOG_GPU,
    DIALOG_JOIN,
    DIALOG_JOINED,
    DIALOG_HERE,
};

struct dialog {
    int *links; // a connection to each member, -1 = none
    int n;
    // private
    bool *behind; // for each member: it has not sent AGAIN of this transfer yet
    uint64_t number;
};

struct dialog_event {
    int member;
    enum dialog_kind kind;
    char *body; // ends with a NUL, which `len` does not count; the caller frees it
    size_t len;
};

void dialog_init(struct dialog *c, int n);
void dialog_done(struct dialog *c); // closes all connections
// Call this first if the connections are of an earlier transfer. From each member, only messages of the transfer with
// this number count.
void dialog_again(struct dialog *c, uint64_t number);
// Returns the next message of a member. It waits up to timeout_ms, but returns at once if one of the other descriptors
// is ready. False: there is no message.
bool dialog_next(struct dialog *c, struct pollfd *others, size_t n_others, int timeout_ms, struct dialog_event *ret);
// Returns another member than this one whose connection has ended, and who has said nothing else; -1 = none.
int dialog_lost(const struct dialog *c, int but);
void dialog_say(struct dialog *c, int member, enum dialog_kind kind, const void *body, size_t len);
