// SPDX-License-Identifier: Apache-2.0
// Whether a text ends with another one.
#pragma once

#include <stdbool.h>
#include <string.h>

static inline bool text_ends(const char *s, const char *end)
{
    size_t n = strlen(s), len = strlen(end);
    return n >= len && strcmp(s + n - len, end) == 0;
}
