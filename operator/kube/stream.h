// SPDX-License-Identifier: Apache-2.0
// Splits the body of a watch into events, and a list into its items, while they arrive. The bytes may be cut anywhere.
// Pure. It holds at most one line or item, so a list of 10,000 pods needs only the memory of its largest pod.
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
// Calls fn for each complete line that is not empty. Stops at the first error. line_splitter_done() drops an incomplete
// line; the next watch brings it again.
int line_splitter_feed(struct line_splitter *s, const char *bytes, size_t n, line_fn fn, void *ctx, struct err *err);

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

// A list from the API server.
typedef int (*list_item_fn)(void *ctx, const char *item, size_t len, struct err *err);

struct list_splitter;
struct list_splitter *list_splitter_new(size_t max_item); // 0 = 8 MiB
void list_splitter_free(struct list_splitter *s);
int list_splitter_feed(struct list_splitter *s, const char *bytes, size_t n, list_item_fn item, void *ctx,
                       struct err *err);
// Call it after the last byte. ERR_PROTO if the document is not complete.
int list_splitter_end(const struct list_splitter *s, const char **ret_resource_version, const char **ret_continue,
                      struct err *err);
