// SPDX-License-Identifier: Apache-2.0
// The uplinks of a client: the one for new calls, and those whose proxies take no new calls. The latter stay until
// their calls are answered.
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
// The proxy takes no new calls, so another uplink takes them. False: too many uplinks are leaving; try again when one
// of them is gone.
bool uplinks_move(struct uplinks *t, struct err *why);
void uplinks_flush(struct uplinks *t);
// Between turns: ends and frees leaving uplinks that have no calls any more. Returns whether one is gone.
bool uplinks_sweep(struct uplinks *t);
// All uplinks leave. Before uplinks_gone(), their proxies may not know.
void uplinks_end(struct uplinks *t, const char *reason);
bool uplinks_gone(const struct uplinks *t);
