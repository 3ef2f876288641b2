// SPDX-License-Identifier: Apache-2.0
// A member of one transfer: what the other members have told it, and what the members have decided. Members 0 to
// n_receivers - 1 are the receivers, in the order of their ranks. The senders follow. One thread uses a participant.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/transfer/commit.h"
#include "worker/transfer/dialog.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
    PARTICIPANT_REASON_SIZE = 2048,
    PARTICIPANT_SLICE_MS = 100, // a participant checks this often whether it was canceled
    PARTICIPANT_LATE_MS = 10 * 1000,
    PARTICIPANT_PATIENCE_MS = 70 * 1000,
};

struct participant_config {
    int index, n_receivers, n_senders;
    const char *const *names; // of all members: "rank 2 of rollout"
    int64_t limit_ms;
    int64_t late_ms;     // PARTICIPANT_LATE_MS: other members wait this much longer than the center
    int64_t patience_ms; // PARTICIPANT_PATIENCE_MS: after the limit, it waits this long for a member that stands still
    const atomic_bool *canceled;
};

struct participant_member { // what a member has told the center; a receiver tells `over` to the witness
    char *hello, *gpu, *needs;
    size_t hello_len, gpu_len, needs_len;
    const char *waits_for; // the name of the member that gives it nothing; NULL = none
    bool ready, over;
    bool by_nccl;    // it uses NCCL, so it says now and then that it is here
    bool joined;     // the communicator, or it has said why it could not
    int64_t here_ms; // when it said so last, or that it has joined
};

struct participant {
    struct participant_config config;
    struct dialog dialog;
    struct participant_member *members; // itself included; only the center and the witness fill it
    int n_hello, n_gpu, n_needs, n_joined;
    char *not_joined;      // why a member could not join the communicator of NCCL; NULL = no member has failed
    uint64_t *wrote;       // bytes that each sender says that it has written to the memory of this receiver
    char *all, *join, *go; // what the center has told this member; NULL = nothing yet
    size_t all_len, join_len, go_len;
    int witness; // a member; -1 = none
    enum commit_decision decided;
    int code; // the error that keeps the old weights, 0 = none
    char reason[PARTICIPANT_REASON_SIZE];
    // private
    struct commit_center center;
    struct commit_receiver receiver;
    enum commit_decision at_witness;
    int64_t until, said_here_ms;
    int waited; // slices after the limit in which no message came; a process that stands still counts none
};

void participant_init(struct participant *p, const struct participant_config *config);
void participant_done(struct participant *p);
bool participant_is_center(const struct participant *p);
bool participant_is_receiver(const struct participant *p);
int64_t participant_left_ms(const struct participant *p); // until the limit; not below 0

bool participant_is_patient(const struct participant *p); // it still waits for a member that stands still
// True on the witness while a receiver is connected that may not know the decision.
bool participant_may_be_asked(const struct participant *p);

// Takes the messages of other members. It waits up to timeout_ms for the first one, but returns at once if one of the
// other descriptors is ready. It takes no message that follows GO: a sender that is slow may find GO and the decision
// together, and it first has to become the witness, and to serve. Then it checks whether the transfer was canceled, and
// whether the limit has passed.
void participant_attend(struct participant *p, struct pollfd *others, size_t n_others, int timeout_ms);
void participant_witness(struct participant *p, int witness);  // this member is the witness from now on
void participant_waits_for(struct participant *p, int member); // a receiver gets nothing from that member; -1 = none
// Call this often while NCCL moves weights. In the second half of the time, the member tells the center now and then
// that it is here. NCCL does not say which member it waits for, so the center names a member that is silent.
void participant_here(struct participant *p);
void participant_joined(struct participant *p, const struct err *err);       // code 0 = it has joined the communicator
void participant_wrote(struct participant *p, int receiver, uint64_t bytes); // a sender has written so many
void participant_ready(struct participant *p);                               // a receiver has all of its weights
void participant_report(struct participant *p, const struct err *err);       // it cannot continue; the center decides
void participant_over(struct participant *p); // a receiver has heard the decision; its connections stay
void participant_fail(struct participant *p, const struct err *err); // it cannot continue, and keeps the old weights
// Returns 0 if the new weights were decided for. Otherwise `err` says why the old ones stay.
int participant_outcome(const struct participant *p, struct err *err);
