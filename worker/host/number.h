// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers of JSON. They do not depend on the locale that the user's module has set.
#pragma once

#include "common/base/json.h"

enum { NUMBER_SIZE = 40 };

// Returns false if `v` is not a number, too large for a double, or longer than 511 characters. NULL is not a number.
bool number_read(const struct json *v, double *ret);
// Writes the shortest text that reads back as the same number: 0.1, 11, 1e+300. Returns false for NaN and infinity,
// which JSON does not have.
bool number_format(double v, char out[NUMBER_SIZE]);
