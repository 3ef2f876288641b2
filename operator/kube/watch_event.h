// SPDX-License-Identifier: Apache-2.0
// An event of a watch: a line of its body. Pure.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum watch_event_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };
struct watch_event {
    enum watch_event_type type;
    const char *object; // JSON text of the object, inside the line
    size_t object_len;
};
// This scans the line, but does not parse it. operator/api decodes `object`.
int watch_event_scan(const char *line, size_t len, struct watch_event *ret, struct err *err);

// Does the same faster for a line in the order of the API server: ADDED, MODIFIED or DELETED, then the object up to the
// end of the line. It does not check the object: if `object` is not a JSON object, call watch_event_scan(). Returns
// false for other lines.
bool watch_event_guess(const char *line, size_t len, struct watch_event *ret);
// Does the same for the beginning of such a line. `object` then goes up to the end of the text.
bool watch_event_begins(const char *line, size_t len, struct watch_event *ret);
