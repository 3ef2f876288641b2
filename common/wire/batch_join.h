// SPDX-License-Identifier: Apache-2.0
// Joins several batches into one: the results of the ranks of a call. Pure, like batch.h.
#pragma once

#include "common/wire/batch.h"

struct batch_result {
    const struct batch *batch;
    uint32_t rank;  // for messages
    size_t padding; // how many rows at its end are repeated ones
};

// Joins results in this order; part i's source is its index. They must have the same form: tensors (dtype, all
// dimensions except the first) and columns. If several results have metadata, it must be equal. The exception is
// `metrics` of cadre.meta: an object or a list of objects becomes an object of lists. Padding is removed. If there was
// any, `given` is the number of rows that each rank got, and each result must have as many (0: any number). ERR_INVALID
// names the difference, and the ranks.
int batch_join(const struct batch_result *results, size_t n, size_t given, struct arena *a, struct scatter *out,
               struct err *err);
