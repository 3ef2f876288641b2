// SPDX-License-Identifier: Apache-2.0
// W3C Trace Context: "00-<32 hex digits: trace>-<16: parent>-<2: flags>". A malformed one counts as missing, as the
// standard requires.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TRACEPARENT_LEN = 55 };

// A later version (not ff) may have more text after a "-". Only the first TRACEPARENT_LEN bytes count.
bool traceparent_valid(const char *text, size_t len);
// Copies it, NUL-terminated; "" if it is malformed or NULL.
void traceparent_copy(char out[TRACEPARENT_LEN + 1], const char *text, size_t len);
