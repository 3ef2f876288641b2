// SPDX-License-Identifier: Apache-2.0
// Makes a rank die or stand still in the middle of a transfer, in builds for tests (CADRE_FAULTS):
//
//   CADRE_TRANSFER_FAULT="FILE"     FILE has a line "PHASE SIGNAL": "ready 9", "moving 19"
//
// When the rank reaches this phase, it removes the file and sends the signal to itself.
#pragma once

enum transfer_fault_phase {
    TRANSFER_FAULT_MET,     // the rank is connected to the center
    TRANSFER_FAULT_JOINING, // it makes a communicator of NCCL, and has not said that it has joined
    TRANSFER_FAULT_BEGUN,   // all connections are there
    TRANSFER_FAULT_MOVING,  // some MiB have moved
    TRANSFER_FAULT_MOVED,   // it has all its weights, and has not said so
    TRANSFER_FAULT_READY,   // it has said so
    TRANSFER_FAULT_DECIDED, // it has heard the decision
    TRANSFER_FAULT_TAKEN,   // it has the new weights
};

void transfer_fault_at(enum transfer_fault_phase phase);
