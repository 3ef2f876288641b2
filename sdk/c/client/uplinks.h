// SPDX-License-Identifier: Apache-2.0
// The uplinks of a client: the one for new calls, and those whose proxies take no new calls, until theirs are answered.
#pragma once

#include "sdk/c/client/uplink.h"

enum { UPLINKS_LEAVING_MAX = 4 };

struct uplinks {
    struct uplink *now;  // for new calls
    struct list leaving; // the others
    // private
    struct uplink_config config;
    struct ws_addresses *addresses;
    struct memory *memory;
    uint32_t n_leaving;
};

void uplinks_init(struct uplinks *t, const struct uplink_config *config); // without addresses and memory
void uplinks_done(struct uplinks *t);
// The proxy takes no new calls: another uplink does. False: as many leave as may, try again when one of them is gone.
bool uplinks_move(struct uplinks *t, struct err *why);
void uplinks_flush(struct uplinks *t);
// Between turns: ends and frees those that nobody needs any more. Returns whether one is gone.
bool uplinks_sweep(struct uplinks *t);
void uplinks_end(struct uplinks *t, const char *reason); // all leave; until uplinks_gone() their proxies may not know
bool uplinks_gone(const struct uplinks *t);
