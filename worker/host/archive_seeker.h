// SPDX-License-Identifier: Apache-2.0
// Asks the proxy for pieces of the archive of code that this process lacks (docs/protocol.md, "Archives"). One thread
// asks and waits; the loop's thread sends what it asks, and brings what comes.
#pragma once

#include "common/base/loop.h"
#include "common/wire/archive_piece.h"

struct archive_seeker;

// `ask`, on the loop's thread: the nth time that this piece is wanted, so that another proxy may be asked.
struct archive_seeker *archive_seeker_new(struct loop *loop,
                                          void (*ask)(void *ctx, const struct archive_piece *p, unsigned nth),
                                          void *ctx);
void archive_seeker_free(struct archive_seeker *s); // on the loop's thread, when no other uses it; accepts NULL
void archive_seeker_bring(struct archive_seeker *s, const struct archive_piece *p); // on the loop's thread

// On any other thread. How many bytes are in `out`, which has room for ARCHIVE_PIECE_MAX; 0: nobody has it;
// ERR_TIMEOUT.
int64_t archive_seeker_wait(struct archive_seeker *s, const char *sha256, int64_t offset, char *out, int64_t ms);
