// SPDX-License-Identifier: Apache-2.0
// The archives of code (spec.worker.archive) that lie in this pod, for pods of the namespace that lack them. Workers
// put them there: the file SHA256.tar in a folder, whole or not at all. The agent does not look into them.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/json_writer.h"
#include "common/base/loop.h"

enum { KEEPER_ARCHIVES_MAX = 64, KEEPER_LOOK_MS = 1000, KEEPER_VERSION_NEW = 1 };

struct keeper;

struct keeper *keeper_new(struct loop *loop);
void keeper_free(struct keeper *k); // accepts NULL
// A process with this environment begins. If it wants an archive (CADRE_ARCHIVE), that is or will be in its folder
// (CADRE_ARCHIVES, else the default of workers in Python).
void keeper_want(struct keeper *k, const char *const *env);
// A number that grows with what is here; KEEPER_VERSION_NEW: nothing ever was.
uint64_t keeper_version(const struct keeper *k);
void keeper_write(const struct keeper *k, struct json_writer *w); // the member "archives", a list of SHA-256
// A piece, at most ARCHIVE_PIECE_MAX bytes (archive_piece.h). ERR_NOT_FOUND: it is not here, or not so long.
int keeper_read(struct keeper *k, const char *sha256, int64_t offset, struct buf *out, struct err *err);
