// SPDX-License-Identifier: Apache-2.0
// The body of an ARCHIVE record: a process that lacks its archive of code asks for the next piece of it, or an agent
// that keeps the archive answers. docs/protocol.md, "Archives".
//
//   u32 length of the head   the head, JSON   of an answer: the piece
//
//   {"archive": SHA-256, "offset": 0}                                                       from and to a worker
//   {"archive": SHA-256, "offset": 0, "group": UID, "rank": 2, "attempt": 1}                from and to an agent
//   "missing": true in an answer: nobody has it
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { ARCHIVE_PIECE_MAX = 512 * 1024, ARCHIVE_HEAD_MAX = 512, ARCHIVE_SHA256_LEN = 64 };

struct archive_piece {
    const char *group; // of the process that asks; NULL between that process and the proxy
    uint32_t rank, attempt;
    const char *sha256;
    int64_t offset;
    bool missing;
    const char *data; // in the body; of an answer that is not missing, at least a byte
    size_t len;
};

bool archive_sha256(const char *text); // whether it looks like one; false for NULL
void archive_piece_write(const struct archive_piece *p, struct buf *out);
// Strings are in the arena. ERR_PROTO.
int archive_piece_read(const char *body, size_t len, struct arena *a, struct archive_piece *ret, struct err *err);
