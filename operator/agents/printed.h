// SPDX-License-Identifier: Apache-2.0
// OUTPUT of an agent, decoded: {"group": UID, "lines": [[RANK, "text"], ...], "dropped": N}. Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdint.h>

struct printed_line {
    uint32_t rank;
    const char *text;
};

struct printed { // all in the arena
    const char *group;
    struct printed_line *lines;
    size_t n;
    size_t dropped; // lines that were not sent
};

// ERR_INVALID; ERR_LIMIT: it is nested too deep.
int printed_decode(const char *body, size_t len, struct arena *a, struct printed *ret, struct err *err);
