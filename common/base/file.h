// SPDX-License-Identifier: Apache-2.0
// Small files that another program writes: kubeconfigs, tokens, certificates.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

// Appends the whole file; the cap of `ret` is the longest file accepted (ERR_LIMIT). ERR_NOT_FOUND if there is none,
// ERR_IO if it cannot be read. The message names the file.
int file_read(const char *path, struct buf *ret, struct err *err);
