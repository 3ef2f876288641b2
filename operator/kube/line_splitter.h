// SPDX-License-Identifier: Apache-2.0
// Splits the body of a watch into lines while it arrives. The bytes may be cut anywhere. Pure. It holds at most one
// line. watch_event.h finds the event in a line.
#pragma once

#include "operator/kube/partial_text.h"

struct line_splitter {
    struct partial_text line;
};
void line_splitter_init(struct line_splitter *s, size_t max_line); // 0 = 16 MiB
void line_splitter_done(struct line_splitter *s);
void line_splitter_reset(struct line_splitter *s); // drops an incomplete line; the next watch brings it again
// Calls fn for each complete line that is not empty, and for the beginning of a line that is too long. Stops at the
// first error.
int line_splitter_feed(struct line_splitter *s, const char *bytes, size_t n, text_fn fn, void *ctx, struct err *err);
