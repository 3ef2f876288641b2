// SPDX-License-Identifier: Apache-2.0
// Durations in the form that kubectl and other Go programs use: "500ms", "15s", "1h30m".
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DURATION_MAX_MS = 7 * 24 * 3600 * 1000 };

// Returns false if the text is no duration, or longer than DURATION_MAX_MS.
bool duration_parse(const char *text, int64_t *ret_ms);
