// SPDX-License-Identifier: Apache-2.0
// The archives of code (spec.worker.archive) that lie in this pod, for pods of the namespace that lack them. Workers
// put them there: the file SHA256.tar in a folder, whole or not at all. The agent does not look into them.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/json_writer.h"
#include "common/base/loop.h"

enum { POD_ARCHIVES_ARCHIVES_MAX = 64, POD_ARCHIVES_LOOK_MS = 1000, POD_ARCHIVES_VERSION_NEW = 1 };

struct pod_archives;

struct pod_archives *pod_archives_new(struct loop *loop);
void pod_archives_free(struct pod_archives *k); // accepts NULL
// A process with this environment begins. If it wants an archive (CADRE_ARCHIVE), that is or will be in its folder
// (CADRE_ARCHIVES, else the default of workers in Python).
void pod_archives_want(struct pod_archives *k, const char *const *env);
// A number that grows with what is here; POD_ARCHIVES_VERSION_NEW: nothing ever was.
uint64_t pod_archives_version(const struct pod_archives *k);
void pod_archives_write(const struct pod_archives *k,
                        struct json_writer *w); // the member "archives", a list of SHA-256
// A piece, at most ARCHIVE_PIECE_MAX bytes (archive_piece.h). ERR_NOT_FOUND: it is not here, or not so long.
int pod_archives_read(struct pod_archives *k, const char *sha256, int64_t offset, struct buf *out, struct err *err);
