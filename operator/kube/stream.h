// SPDX-License-Identifier: Apache-2.0
// Splits the body of a watch into events, and a list into its items, while they arrive. The bytes may be cut anywhere.
// Pure. It holds at most one line or item, so a list of 10,000 pods needs only the memory of its largest pod.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

// Takes a line of a watch or an item of a list. `whole` is false if it is longer than the limit: the text is then only
// its beginning, as long as the limit, and the rest is skipped. One object must not stop the mirror of all others.
typedef int (*text_fn)(void *ctx, const char *text, size_t len, bool whole, struct err *err);

// Lines of a watch.
struct line_splitter {
    struct buf partial; // cap = longest line
    bool skipping;      // the rest of a line that is too long
};
void line_splitter_init(struct line_splitter *s, size_t max_line); // 0 = 16 MiB
void line_splitter_done(struct line_splitter *s);
void line_splitter_reset(struct line_splitter *s); // drops an incomplete line; the next watch brings it again
// Calls fn for each complete line that is not empty, and for the beginning of a line that is too long. Stops at the
// first error.
int line_splitter_feed(struct line_splitter *s, const char *bytes, size_t n, text_fn fn, void *ctx, struct err *err);

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

// A list from the API server.
struct list_splitter;
struct list_splitter *list_splitter_new(size_t max_item); // 0 = 16 MiB
void list_splitter_free(struct list_splitter *s);
int list_splitter_feed(struct list_splitter *s, const char *bytes, size_t n, text_fn item, void *ctx, struct err *err);
// Call it after the last byte. ERR_PROTO if the document is not complete.
int list_splitter_end(const struct list_splitter *s, const char **ret_resource_version, const char **ret_continue,
                      struct err *err);
