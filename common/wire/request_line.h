// SPDX-License-Identifier: Apache-2.0
// The first line of an HTTP request. It checks that every reader finds the same path in the line. A reader that decodes
// "%2f..%2f", or takes out "/../" and "//", finds another path than a reader that compares bytes, such as a proxy with
// rules for paths. So a path may contain none of these. Pure.
#pragma once

#include <stddef.h>

enum { REQUEST_LINE_MAX = 8 << 10 }; // bytes of it

enum request_line {
    REQUEST_LINE_MORE, // its end is not there
    REQUEST_LINE_GOOD,
    REQUEST_LINE_BAD,
};

// `text`: the beginning of a connection. The text after a '?' is not checked.
enum request_line request_line_check(const char *text, size_t len);
