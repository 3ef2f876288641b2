// SPDX-License-Identifier: Apache-2.0
// Fetches an object from the process that has it. This blocks, so only the executor's threads may call it.
//
// Values on the owner's device come to the device of this rank, if the client wants that. If both processes are at the
// same place (rank_device_place()), they are copied from device to device. Otherwise they come over the connection.
#pragma once

#include "worker/host/region.h"

#include <stdatomic.h>
#include <stdint.h>

// OBJECT_FETCH_COPY_MS is less than OBJECT_SERVER_SILENT_MS.
enum { OBJECT_FETCH_SILENT_MS = 30 * 1000, OBJECT_FETCH_COPY_MS = 20 * 1000 };

struct object_fetch {
    const char *at; // "address:port", "[v6]:port"
    uint64_t id, bytes;
    int64_t until;
    const char *key;             // 64 characters
    const char *owner;           // for messages: "rank 2 of ml/actor"
    const atomic_bool *canceled; // checked several times a second
    struct rank_device *device;  // where values on a device should go; NULL = to the host
};

// `out` has room for f->bytes. *ret_values: the values on the device, which follow what is in `out`; NULL = everything
// is in `out`. ERR_UNAVAILABLE: the owner cannot be reached, or was lost on the way. ERR_NOT_FOUND: it no longer has
// the object. ERR_FORBIDDEN: it refuses the key. ERR_CANCELED. Also the errors of device.h.
int object_fetch(const struct object_fetch *f, char *out, struct region **ret_values, struct err *err);
