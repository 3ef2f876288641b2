// SPDX-License-Identifier: Apache-2.0
// Small files: those that another program writes (kubeconfigs, tokens, certificates), and those in memory that another
// process gets. Descriptors are closed, and sent to another process.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

// Appends the whole file; the cap of `ret` is the longest file accepted (ERR_LIMIT). ERR_NOT_FOUND if there is none,
// ERR_IO if it cannot be read. The message names the file.
int file_read(const char *path, struct buf *ret, struct err *err);

// The first line of the file, without the newline; "" if the file cannot be read.
void file_first_line(const char *path, char *out, size_t size);

void file_close(int *fd); // -1: nothing is open; becomes -1

bool file_write_all(int fd, const char *data, size_t n); // false: errno says why
// Makes a file in memory that contains the bytes of `b`, positioned at its beginning. -1: `b` is over its cap, or errno
// says why.
int file_in_memory(const char *name, const struct buf *b);

enum { FILE_SEND_MAX = 64 };
// Sends the bytes over a Unix socket in one message, with `n` descriptors, FILE_SEND_MAX at most. The receiver gets
// copies of them. Does not wait for room. False: errno says why.
bool file_send(int to, const char *bytes, size_t len, const int *fds, size_t n);
