// SPDX-License-Identifier: Apache-2.0
// Splits the body of a watch into events while it arrives, at any byte boundary. Pure. It holds at most one line.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

// Lines of a watch.
struct line_splitter {
    struct buf partial; // cap = longest line
};
typedef int (*line_fn)(void *ctx, const char *line, size_t len, struct err *err);
void line_splitter_init(struct line_splitter *s, size_t max_line); // 0 = 8 MiB
void line_splitter_done(struct line_splitter *s);
// Calls fn for every complete line that is not empty; stops at its first error. An unterminated tail is dropped by
// _done: the next watch brings it again.
int line_splitter_feed(struct line_splitter *s, const char *bytes, size_t n, line_fn fn, void *ctx, struct err *err);

// One event of a watch.
enum watch_event_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };
struct watch_event {
    enum watch_event_type type;
    const char *object; // JSON text of the object, inside the line
    size_t object_len;
};
// The line is only scanned, not parsed: `object` is decoded by operator/api.
int watch_event_scan(const char *line, size_t len, struct watch_event *ret, struct err *err);

// The same of a line as the API server writes it: ADDED, MODIFIED or DELETED, and then the object to the end of the
// line. Nothing between is looked at: if `object` is not a JSON object, watch_event_scan() has the last word. False for
// other lines.
bool watch_event_guess(const char *line, size_t len, struct watch_event *ret);
