// SPDX-License-Identifier: Apache-2.0
// What the members of a transfer say to each other. Member 0, the center, has a connection to each other member; the
// witness has one to each receiver, too.
//
//   member -> center     GPU       before HELLO, if its weights could move by NCCL (nccl_join.h)
//   member -> center     HELLO     u64 hash of its side, its place, and of rank 0 of a group: the side
//   center -> member     ALL       u32 length of the senders' side, that, u32 length of the receivers' side, that, the
//                                  places of all members
//   receiver -> center   NEEDS     how it gets what it needs from each sender (routes.h)
//   center -> member     JOIN      a communicator of NCCL (nccl_join.h)
//   member -> center     JOINED    u32 code, text: why it could not; 0 = it has joined
//   center -> member     GO        the NEEDS of all receivers, and who is the witness
//   member -> center     HERE      nothing: it waits for NCCL and has not ended; in the second half of its time
//   receiver -> center   WAITS     u32 member that gives it nothing, others = nobody; in the second half of its time
//   sender -> center     WROTE     u32 receiver, u64 bytes that it has written to its memory, all ones = it cannot
//   center -> receiver   WROTE     u32 sender, u64 bytes
//   receiver -> center   READY     it has all of its weights
//   member -> center     FAILED    u32 code, text: it gives up
//   center -> witness    PROPOSE   to take them
//   receiver -> witness  ASK       what was decided?
//   receiver -> witness  OVER      it has heard the decision, and will not ask
//   both ways            AGAIN     u64 number of the transfer: what comes before it is of an earlier one
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
    DIALOG_AGAIN, // also in place of what was said before it, without a body
    DIALOG_WROTE,
    DIALOG_GPU,
    DIALOG_JOIN,
    DIALOG_JOINED,
    DIALOG_HERE,
};

struct dialog {
    int *links; // of each member, -1 = none
    int n;
    // private
    bool *behind; // of each member: it has not come to this transfer yet
    uint64_t number;
};

struct dialog_event {
    int member;
    enum dialog_kind kind;
    char *body; // NUL behind it; for free()
    size_t len;
};

void dialog_init(struct dialog *c, int n);
void dialog_done(struct dialog *c); // closes what is open
// Over connections of an earlier transfer, first of all: of each member, only what it says in the transfer of that
// number counts.
void dialog_again(struct dialog *c, uint64_t number);
// The next thing that a member says. It waits for so many ms at most, and only as long as none of the other descriptors
// is ready. False: nothing was said.
bool dialog_next(struct dialog *c, struct pollfd *others, size_t n_others, int timeout_ms, struct dialog_event *ret);
void dialog_say(struct dialog *c, int member, enum dialog_kind kind, const void *body, size_t len);
