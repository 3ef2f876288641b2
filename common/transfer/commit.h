// SPDX-License-Identifier: Apache-2.0
// How all receivers of a transfer take the new weights, or all of them keep the old ones, also if one process dies or
// stands still at any moment. Pure: the caller sends what these functions say, and tells them what has come.
//
// Receiver 0 is the center: it decides. One of the senders is the witness: it keeps the decision for those who lose the
// center. A receiver that has all of its weights says so to the center. When all have, the center proposes to the
// witness to take them. The witness remembers the first thing that it hears: this proposal, or the question of a
// receiver that has lost the center, which means to keep the old weights. So all who ask the witness hear
// the same. The center tells the receivers after the witness has answered.
//
// If both the center and the witness fail in the moment of the decision, receivers that have not heard it keep the old
// weights, and others may have taken the new ones.
#pragma once

#include <stdbool.h>

enum commit_decision { COMMIT_OPEN, COMMIT_TAKE, COMMIT_KEEP };

// Each function of the center says what is to be done next.
enum commit_next {
    COMMIT_WAIT,
    COMMIT_PROPOSE,   // to the witness
    COMMIT_SAY_TAKE,  // to all receivers, and do it
    COMMIT_SAY_KEEP,  // likewise
    COMMIT_ASK,       // of a receiver: ask the witness
    COMMIT_SAY_READY, // of a receiver: to the center
};

struct commit_center {
    int left; // receivers, itself included, that are not ready
    bool proposed;
    enum commit_decision decision;
};

void commit_center_init(struct commit_center *c, int receivers);
enum commit_next commit_center_ready(struct commit_center *c, bool has_witness); // one more receiver, or itself
enum commit_next commit_center_failed(struct commit_center *c); // somebody died, or gave up; or the time is over
// The witness neither answers nor dies, for long.
enum commit_next commit_center_gives_up(struct commit_center *c);
// The witness has answered; or it has told a receiver to keep the old weights, which it tells the center at once.
enum commit_next commit_center_answered(struct commit_center *c, enum commit_decision decision);
enum commit_next commit_center_alone(struct commit_center *c); // the witness has died

struct commit_receiver {
    bool ready, asks, center_lost, witness_lost;
    enum commit_decision decision;
    bool certain; // false: it keeps the old weights, and others may have the new ones
};

void commit_receiver_init(struct commit_receiver *r, bool has_witness);
enum commit_next commit_receiver_pulled(struct commit_receiver *r);
void commit_receiver_told(struct commit_receiver *r, enum commit_decision decision); // by the center or the witness
// COMMIT_ASK, or COMMIT_WAIT: see the decision.
enum commit_next commit_receiver_center_lost(struct commit_receiver *r);
enum commit_next commit_receiver_witness_lost(struct commit_receiver *r);
// The time of its wait is over. That is so much longer than the center's that the center or the witness must have
// failed.
enum commit_next commit_receiver_late(struct commit_receiver *r);
void commit_receiver_gives_up(struct commit_receiver *r); // long after that: neither of them answers

// The witness: what it answers to the center, and to a receiver. `decision` is COMMIT_OPEN at first.
enum commit_decision commit_witness_proposed(enum commit_decision *decision);
enum commit_decision commit_witness_asked(enum commit_decision *decision);
