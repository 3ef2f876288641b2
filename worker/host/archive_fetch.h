// SPDX-License-Identifier: Apache-2.0
// Asks the proxy for pieces of the archive of code that this process lacks (docs/protocol.md, "Archives"). One thread
// waits for a piece. The loop's thread sends the requests, and hands over the answers.
#pragma once

#include "common/base/loop.h"
#include "common/wire/archive_piece.h"

struct archive_fetch;

// `ask`: called on the loop's thread. `nth` counts the requests for this piece, so that another proxy may be asked.
struct archive_fetch *archive_fetch_new(struct loop *loop,
                                        void (*ask)(void *ctx, const struct archive_piece *p, unsigned nth), void *ctx);
void archive_fetch_free(struct archive_fetch *f); // on the loop's thread, when no other thread uses it; accepts NULL
void archive_fetch_deliver(struct archive_fetch *f, const struct archive_piece *p); // on the loop's thread

// On any other thread. Returns the number of bytes in `out`, which has room for ARCHIVE_PIECE_MAX. 0: nobody has the
// piece. ERR_TIMEOUT: no answer came.
int64_t archive_fetch_wait(struct archive_fetch *f, const char *sha256, int64_t offset, char *out, int64_t ms);
