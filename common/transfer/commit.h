// SPDX-License-Identifier: Apache-2.0
// All receivers of a transfer take the new weights, or all keep the old ones, even if one process dies or stands still
// at any moment. Pure: the caller sends the messages that these functions return, and passes in the messages that
// arrive.
//
// Receiver 0 is the center: it decides. One of the senders is the witness: it keeps the decision for receivers that
// lose the center. A receiver that has all of its weights tells the center. When all receivers have theirs, the center
// proposes to the witness to take the new weights. The witness remembers the first message that it gets: this proposal,
// or the question of a receiver that has lost the center. The question means to keep the old weights. So the witness
// gives the same answer to everybody who asks. The center tells the receivers after the witness has answered.
//
// If both the center and the witness fail at the moment of the decision, receivers that have not heard it keep the old
// weights, and others may have taken the new ones.
#pragma once

#include <stdbool.h>

enum commit_decision { COMMIT_OPEN, COMMIT_TAKE, COMMIT_KEEP };

// Each function of the center returns the next step.
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
// The witness has not answered for a long time, and has not died.
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
// The receiver has waited long enough. It waits longer than the center. By then the center or the witness must have
// failed.
enum commit_next commit_receiver_late(struct commit_receiver *r);
void commit_receiver_gives_up(struct commit_receiver *r); // long after that: no answer comes

// The witness: its answer to the center, and to a receiver. `decision` is COMMIT_OPEN at first.
enum commit_decision commit_witness_proposed(enum commit_decision *decision);
enum commit_decision commit_witness_asked(enum commit_decision *decision);
