// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers of JSON, whatever locale the user's module has set.
#pragma once

#include "common/base/json.h"

enum { NUMBER_SIZE = 40 };

// False where it is not a number, too large for a double, or longer than 511 characters. NULL is not a number.
bool number_read(const struct json *v, double *ret);
// The shortest text that reads back as the same number: 0.1, 11, 1e+300. False for what JSON cannot say: NaN, infinity.
bool number_format(double v, char out[NUMBER_SIZE]);
