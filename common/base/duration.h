// SPDX-License-Identifier: Apache-2.0
// Durations as text: whole numbers with the units h, m, s and ms, such as "500ms", "15s" or "1h30m". Go programs accept
// these, too. They also accept fractions ("1.5h"), signs and shorter units, which duration_parse() refuses.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { DURATION_MAX_MS = 7 * 24 * 3600 * 1000 };

#define DURATION_FORM "whole numbers with h, m, s or ms, such as 500ms, 15s or 1h30m, at most 168h" // for messages

// Returns false if the text is not a duration, or longer than DURATION_MAX_MS.
bool duration_parse(const char *text, int64_t *ret_ms);
