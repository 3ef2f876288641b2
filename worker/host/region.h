// SPDX-License-Identifier: Apache-2.0
// Memory of the rank's device that several hold, such as the values of a kept result and the calls that use them. It is
// freed beside the loop, because the driver waits for all work of the device first.
#pragma once

#include "worker/host/rank_device.h"

struct region {
    void *memory;
    size_t len;
    bool shared;                 // other processes can open it by
    struct device_handle handle; // this
    // private
    atomic_uint refs;
    struct rank_device *owner;
};

// Inside of the device. ERR_NOMEM says how much is free.
int region_new(struct rank_device *d, size_t len, struct region **ret, struct err *err);
// The same: lets other processes open it, if the device can do that.
void region_share(struct region *r);
struct region *region_ref(struct region *r); // any thread
bool region_is_ours(const struct region *r); // the caller is the only one who holds it
void region_unref(struct region *r);         // the loop's thread; accepts NULL
void region_unref_now(struct region *r);     // any other thread, which waits; accepts NULL
