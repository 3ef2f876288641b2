// SPDX-License-Identifier: Apache-2.0
// A text that arrives in pieces: a line of a watch, or an item of a list. What has arrived of it is kept until its end.
// A text that arrives whole is not copied. Pure.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

// Takes a text, without the blanks at its end. `whole` is false if it is longer than the limit: the text is then only
// its beginning, as long as the limit, and the rest is skipped. One object must not stop the mirror of all others.
typedef int (*text_fn)(void *ctx, const char *text, size_t len, bool whole, struct err *err);

struct partial_text {
    struct buf begun; // what has arrived; cap = longest text
    bool skipping;    // the rest of a text that is too long
};
void partial_text_init(struct partial_text *t, size_t max); // 0 = 16 MiB
void partial_text_done(struct partial_text *t);
void partial_text_reset(struct partial_text *t); // drops what has arrived; another text begins
// Takes the next bytes of the text, up to its end if `ended`. Another text begins after that. Calls fn for a text that
// has ended and is not empty, and for the beginning of one that is too long.
int partial_text_take(struct partial_text *t, const char *bytes, size_t n, bool ended, text_fn fn, void *ctx,
                      struct err *err);
