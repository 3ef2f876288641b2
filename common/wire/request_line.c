// SPDX-License-Identifier: Apache-2.0
#include "common/wire/request_line.h"

#include <stdbool.h>
#include <string.h>

static bool is_segment_end(const char *p, const char *end)
{
    return p == end || *p == '/';
}

// The segment after a slash. It may be empty only at the end of the path.
static bool segment_is_plain(const char *p, const char *end)
{
    if (p < end && *p == '/')
        return false;
    if (p == end || *p != '.')
        return true;
    return !is_segment_end(p + 1, end) && !(p[1] == '.' && is_segment_end(p + 2, end));
}

static bool path_is_plain(const char *p, const char *end)
{
    if (p == end || *p != '/')
        return false;
    for (; p < end; p++)
        if (*p <= ' ' || *p > '~' || strchr("%\\;", *p) || (*p == '/' && !segment_is_plain(p + 1, end)))
            return false;
    return true;
}

enum request_line request_line_check(const char *text, size_t len)
{
    const char *newline = memchr(text, '\n', len), *end = newline ? newline : text + len;
    const char *path = memchr(text, ' ', (size_t)(end - text));
    if (!newline)
        return len < REQUEST_LINE_MAX ? REQUEST_LINE_MORE : REQUEST_LINE_BAD;
    if (!path++ || path == text + 1)
        return REQUEST_LINE_BAD;
    const char *behind = memchr(path, ' ', (size_t)(end - path));
    if (!behind)
        return REQUEST_LINE_BAD;
    const char *query = memchr(path, '?', (size_t)(behind - path));
    return path_is_plain(path, query ? query : behind) ? REQUEST_LINE_GOOD : REQUEST_LINE_BAD;
}
