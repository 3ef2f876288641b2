// SPDX-License-Identifier: Apache-2.0
// The members of one transfer: receivers are members 0 to n_receivers - 1, in the order of their ranks, then senders.
// Here is what they have said, and what was decided. One thread.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/transfer/commit.h"
#include "worker/transfer/dialog.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
    PARTICIPANT_REASON_SIZE = 2048,
    PARTICIPANT_SLICE_MS = 100, // so often it looks whether it was canceled
    PARTICIPANT_LATE_MS = 10 * 1000,
    PARTICIPANT_PATIENCE_MS = 70 * 1000,
};

struct participant_config {
    int index, n_receivers, n_senders;
    const char *const *names; // of all members: "rank 2 of rollout"
    int64_t limit_ms;
    int64_t late_ms;     // PARTICIPANT_LATE_MS: receivers and senders wait so much longer than the center
    int64_t patience_ms; // PARTICIPANT_PATIENCE_MS: after its time, for somebody who stands still
    const atomic_bool *canceled;
};

struct participant_said { // by a member, to the center; `over`: by a receiver, to the witness
    char *hello, *gpu, *needs;
    size_t hello_len, gpu_len, needs_len;
    const char *waits_for; // whom it gets nothing from; NULL = nobody
    bool ready, over;
    bool by_nccl;    // it is to say now and then that it is here
    int64_t here_ms; // when it has said so
};

struct participant {
    struct participant_config config;
    struct dialog dialog;
    struct participant_said *said; // of the center and the witness: of each member, itself included
    int n_hello, n_gpu, n_needs, n_joined;
    char *not_joined;      // why the first of those who could not join has not; NULL = all have
    uint64_t *wrote;       // of a receiver: bytes that each sender has written to its memory, as it has said
    char *all, *join, *go; // of the others: what the center has said; NULL = not yet
    size_t all_len, join_len, go_len;
    int witness; // a member; -1 = none
    enum commit_decision decided;
    int code; // of why the old weights stay
    char reason[PARTICIPANT_REASON_SIZE];
    // private
    struct commit_center center;
    struct commit_receiver receiver;
    enum commit_decision at_witness;
    int64_t until, said_here_ms;
    int waited; // slices after its time in which nothing was said; a process that stands still counts none
};

void participant_init(struct participant *p, const struct participant_config *config);
void participant_done(struct participant *p);
bool participant_is_center(const struct participant *p);
bool participant_is_receiver(const struct participant *p);
int64_t participant_left_ms(const struct participant *p); // of its time, 0 at least

bool participant_is_patient(const struct participant *p); // it still waits for somebody who stands still
bool participant_may_be_asked(
    const struct participant *p); // of the witness: a receiver is there that may not know the decision

// Takes in what others have said; waits for that for so many ms at most, and only as long as none of the other
// descriptors is ready. Then looks whether it was canceled, and whether the time is over.
void participant_attend(struct participant *p, struct pollfd *others, size_t n_others, int timeout_ms);
void participant_witness(struct participant *p, int witness);  // from now on it can decide
void participant_waits_for(struct participant *p, int member); // of a receiver; -1 = nobody
// A member that waits for NCCL calls it often: in the second half of its time, it says now and then that it is here.
// NCCL does not say which member it waits for, so the center names one of those that say nothing.
void participant_here(struct participant *p);
void participant_joined(struct participant *p, const struct err *err); // it has joined a communicator, or could not
void participant_wrote(struct participant *p, int receiver, uint64_t bytes); // of a sender
void participant_ready(struct participant *p);                               // a receiver has all of its weights
void participant_report(struct participant *p, const struct err *err); // it cannot go on, and the center is to decide
void participant_over(struct participant *p); // a receiver has heard the decision; its connections stay
void participant_fail(struct participant *p, const struct err *err); // likewise; it keeps the old weights, and leaves
// Why not, in `err`, where the old weights stay.
int participant_outcome(const struct participant *p, struct err *err);
