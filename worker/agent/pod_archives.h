// SPDX-License-Identifier: Apache-2.0
// The archives of code (spec.worker.archive) in this pod. The agent offers them to pods of the namespace that lack
// them. Workers put them there, as the file SHA256.tar in a folder, completely or not at all. The agent does not read
// what they contain.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/json_writer.h"
#include "common/base/loop.h"

enum { POD_ARCHIVES_MAX = 64, POD_ARCHIVES_LOOK_MS = 1000, POD_ARCHIVES_VERSION_NEW = 1 };

struct pod_archives;

struct pod_archives *pod_archives_new(struct loop *loop);
void pod_archives_free(struct pod_archives *k); // accepts NULL
// Call this when a process with this environment starts. If it wants an archive (CADRE_ARCHIVE), the archive is or will
// be in the folder CADRE_ARCHIVES. Without this variable, it is in the default folder of Python workers.
void pod_archives_want(struct pod_archives *k, const char *const *env);
// A number that grows with each change. POD_ARCHIVES_VERSION_NEW: there never was an archive.
uint64_t pod_archives_version(const struct pod_archives *k);
// Writes the member "archives", a list of SHA-256.
void pod_archives_write(const struct pod_archives *k, struct json_writer *w);
// Reads a piece, at most ARCHIVE_PIECE_MAX bytes (archive_piece.h). ERR_NOT_FOUND: the archive is not here, or ends
// before `offset`.
int pod_archives_read(struct pod_archives *k, const char *sha256, int64_t offset, struct buf *out, struct err *err);
