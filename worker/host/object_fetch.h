// SPDX-License-Identifier: Apache-2.0
// Fetches an object from the process that has it. It blocks, so only the executor's threads may call it.
//
// Values on the owner's device come to the device of this rank, if the client wants that. From a process of the same
// place they are copied from device to device; else they come over the connection.
#pragma once

#include "worker/host/region.h"

#include <stdatomic.h>
#include <stdint.h>

// The latter is less than OBJECT_SERVER_SILENT_MS.
enum { OBJECT_FETCH_SILENT_MS = 30 * 1000, OBJECT_FETCH_COPY_MS = 20 * 1000 };

struct object_fetch {
    const char *at; // "address:port", "[v6]:port"
    uint64_t id, bytes;
    int64_t until;
    const char *key;             // 64 characters
    const char *owner;           // for messages: "rank 2 of ml/actor"
    const atomic_bool *canceled; // looked at several times a second
    struct rank_device *device;  // where values on a device are to go; NULL = they are to go to the host
};

// `out` has room for f->bytes. *ret_values: values that are on the device, behind what is in `out`; NULL = all is
// there. ERR_UNAVAILABLE: the owner cannot be reached, or was lost on the way; ERR_NOT_FOUND: it has the object no
// more; ERR_FORBIDDEN: it does not take the key; ERR_CANCELED. And the errors of device.h.
int object_fetch(const struct object_fetch *f, char *out, struct region **ret_values, struct err *err);
