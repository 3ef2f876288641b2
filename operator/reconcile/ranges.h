// SPDX-License-Identifier: Apache-2.0
// Sets of indexes as people write them: "0-3,6".
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { RANGES_MAX = 64 * 1024 }; // bytes

struct ranges {
    struct buf text;
    int32_t first, last; // the range that is still open, -1 = none
};

#define RANGES_INIT ((struct ranges){BUF_INIT(RANGES_MAX), -1, -1})

void ranges_add(struct ranges *r, int32_t i);               // in ascending order
const char *ranges_take(struct ranges *r, struct arena *a); // returns the text; *r is empty then

// Reads the next range of a text, and advances *text. Returns false at the end, or if the text is no such set (*text is
// NULL then).
// for (const char *t = text; ranges_next(&t, &first, &last);) ...
bool ranges_next(const char **text, int32_t *ret_first, int32_t *ret_last);
