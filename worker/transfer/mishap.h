// SPDX-License-Identifier: Apache-2.0
// Lets a rank die or stand still in the middle of a transfer, in builds for tests (CADRE_FAULTS):
//
//   CADRE_TRANSFER_FAULT="FILE"     FILE has a line "PHASE SIGNAL": "ready 9", "moving 19"
//
// When the rank gets to this phase, it removes the file and sends the signal to itself.
#pragma once

enum mishap_phase {
    MISHAP_MET,     // it is connected to the center
    MISHAP_BEGUN,   // all connections are there
    MISHAP_MOVING,  // some MiB are moved
    MISHAP_MOVED,   // it has all, and has not said so
    MISHAP_READY,   // it has said so
    MISHAP_DECIDED, // it has heard the decision
    MISHAP_TAKEN,   // it has the new weights
};

void mishap_at(enum mishap_phase phase);
