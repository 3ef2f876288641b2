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
    PARTY_REASON_SIZE = 2048,
    PARTY_SLICE_MS = 100, // so often it looks whether it was canceled
    PARTY_LATE_MS = 10 * 1000,
    PARTY_PATIENCE_MS = 70 * 1000,
};

struct party_config {
    int index, n_receivers, n_senders;
    const char *const *names; // of all members: "rank 2 of rollout"
    int64_t limit_ms;
    int64_t late_ms;     // PARTY_LATE_MS: receivers and senders wait so much longer than the center
    int64_t patience_ms; // PARTY_PATIENCE_MS: after its time, for somebody who stands still
    const atomic_bool *canceled;
};

struct party_said { // by a member, to the center; `over`: by a receiver, to the witness
    char *hello, *needs;
    size_t hello_len, needs_len;
    bool ready, over;
};

struct party {
    struct party_config config;
    struct dialog dialog;
    struct party_said *said; // of the center and the witness: of each member, itself included
    int n_hello, n_needs;
    char *all, *go; // of the others: what the center has said; NULL = not yet
    size_t all_len, go_len;
    int witness; // a member; -1 = none
    enum commit_decision decided;
    int code; // of why the old weights stay
    char reason[PARTY_REASON_SIZE];
    // private
    struct commit_center center;
    struct commit_receiver receiver;
    enum commit_decision at_witness;
    int64_t until;
    int waited; // slices after its time in which nothing was said; a process that stands still counts none
};

void party_init(struct party *p, const struct party_config *config);
void party_done(struct party *p);
bool party_is_center(const struct party *p);
bool party_is_receiver(const struct party *p);
int64_t party_left_ms(const struct party *p); // of its time, 0 at least

bool party_is_patient(const struct party *p);   // it still waits for somebody who stands still
bool party_may_be_asked(const struct party *p); // of the witness: a receiver is there that may not know the decision

// Takes in what others have said; waits for that for so many ms at most, and only as long as none of the other
// descriptors is ready. Then looks whether it was canceled, and whether the time is over.
void party_attend(struct party *p, struct pollfd *others, size_t n_others, int timeout_ms);
void party_witness(struct party *p, int witness);          // from now on it can decide
void party_ready(struct party *p);                         // a receiver has all of its weights
void party_report(struct party *p, const struct err *err); // it cannot go on, and the center is to decide
void party_over(struct party *p);                          // a receiver has heard the decision; its connections stay
void party_fail(struct party *p, const struct err *err);   // likewise; it keeps the old weights, and leaves
// Why not, in `err`, where the old weights stay.
int party_outcome(const struct party *p, struct err *err);
