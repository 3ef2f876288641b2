// SPDX-License-Identifier: Apache-2.0
// Points in time, earliest first: a binary heap whose elements are embedded in their owners.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct deadline {
    int64_t at;   // of the monotonic clock, in milliseconds
    size_t index; // in the heap; private; 0 = in none
};

struct deadlines {
    struct deadline **heap; // from 1
    size_t used, size;
};

#define DEADLINES_INIT ((struct deadlines){0})

void deadlines_done(struct deadlines *d);
void deadlines_add(struct deadlines *d, struct deadline *l, int64_t at); // a deadline that is in the heap already moves
void deadlines_del(struct deadlines *d, struct deadline *l);             // does nothing if it is not in the heap
struct deadline *deadlines_first(const struct deadlines *d);             // NULL = none
