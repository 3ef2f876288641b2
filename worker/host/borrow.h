// SPDX-License-Identifier: Apache-2.0
// Fetches an object from the process that has it. It blocks, so only the executor's threads may call it.
#pragma once

#include "common/base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { BORROW_SILENT_MS = 30 * 1000 };

struct borrow {
    const char *at; // "address:port", "[v6]:port"
    uint64_t id, bytes;
    int64_t until;
    const char *key;             // 64 characters
    const char *owner;           // for messages: "rank 2 of ml/actor"
    const atomic_bool *canceled; // looked at several times a second
};

// `out` has room for b->bytes. ERR_UNAVAILABLE: the owner cannot be reached, or was lost on the way; ERR_NOT_FOUND: it
// has the object no more; ERR_FORBIDDEN: it does not take the key; ERR_CANCELED.
int borrow(const struct borrow *b, char *out, struct err *err);
