// SPDX-License-Identifier: Apache-2.0
// The connections between the members of a transfer, which stay for the next one of the same members: so these need not
// meet again. Only connections on which all has been said and heard are kept; the client of the next transfer asks all
// members which ones they have, and has them used if all name the same.
#pragma once

#include "common/base/err.h"
#include "worker/transfer/participant.h"

#include <stdint.h>

struct contacts { // zeroed = none
    uint64_t id;  // of the transfer that has made them; 0 = none
    int index, n_receivers, n_senders, witness;
    int *links;
};

void contacts_drop(struct contacts *c); // closes them
// 0: there are none, or one of them has ended meanwhile, and all are closed then.
uint64_t contacts_id(struct contacts *c);
// Into the dialog of a participant that has just begun. 1: they are there. 0: in that transfer the other group
// received, so everybody finds that they do not fit, and all are closed. ERR_UNAVAILABLE: there are none of that id.
int contacts_use(struct contacts *c, uint64_t id, struct participant *p, struct err *err);
// Out of the dialog of a participant that has taken its weights. If some have ended, none are kept.
void contacts_keep(struct contacts *c, uint64_t id, struct participant *p);
