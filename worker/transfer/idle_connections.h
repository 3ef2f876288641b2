// SPDX-License-Identifier: Apache-2.0
// The connections between the members of a transfer stay open for the next transfer of the same members, so that these
// need not meet again. A member keeps them only after a transfer that succeeded. The client of the next transfer asks
// all members which connections they have. If all name the same transfer, the members use these connections.
#pragma once

#include "common/base/err.h"
#include "worker/transfer/participant.h"

#include <stdint.h>

struct idle_connections { // zeroed = none
    uint64_t id;          // of the transfer that made them; 0 = none
    int index, n_receivers, n_senders, witness;
    int *links;
};

void idle_connections_drop(struct idle_connections *c); // closes them
// Returns 0 if there are none. If one of them has ended, it closes all, and returns 0.
uint64_t idle_connections_id(struct idle_connections *c);
// Moves the connections into the dialog of a participant that has just begun, and returns 1. Returns 0 if the other
// group received in that transfer: all members find that the connections do not fit, and close them. ERR_UNAVAILABLE:
// there are no connections of that transfer.
int idle_connections_use(struct idle_connections *c, uint64_t id, struct participant *p, struct err *err);
// Takes the connections out of the dialog of a participant after a transfer that succeeded. If some have ended, it
// keeps none.
void idle_connections_keep(struct idle_connections *c, uint64_t id, struct participant *p);
