// SPDX-License-Identifier: Apache-2.0
// Times as the API server writes them: "2026-01-02T03:04:05Z", with or without a fraction or an offset.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RFC3339_SIZE = 40 };

// Unix time in milliseconds, finer fractions cut off. False if the whole text is not a time of the years 1 to 9999.
bool rfc3339_parse(const char *s, size_t len, int64_t *ret_ms);
// Whole seconds (metav1.Time) and microseconds (metav1.MicroTime), in UTC. Return `out`.
const char *rfc3339_format(int64_t ms, char out[RFC3339_SIZE]);
const char *rfc3339_format_micro(int64_t ms, char out[RFC3339_SIZE]);
