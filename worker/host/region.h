// SPDX-License-Identifier: Apache-2.0
// Memory of the rank's device that several holders share, such as the values of a kept result and the calls that use
// them. Another thread frees it, because the driver waits for all work of the device first.
#pragma once

#include "worker/host/rank_device.h"

struct region {
    void *memory;
    size_t len;
    bool shared;                 // other processes can open it with `handle`
    struct device_handle handle; // this
    // private
    atomic_uint refs;
    struct rank_device *owner;
};

// Call this inside the device. If there is no room, waits for memory that is being freed, SWEEPER_LIMIT_MS at most. The
// message of ERR_NOMEM says how much is free.
int region_new(struct rank_device *d, size_t len, struct region **ret, struct err *err);
// Call this inside the device. Lets other processes open the memory, if the device supports that.
void region_share(struct region *r);
// These are for any thread.
struct region *region_ref(struct region *r);
bool region_is_ours(const struct region *r); // the caller is the only holder
void region_unref(struct region *r);         // accepts NULL
