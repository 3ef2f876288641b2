// SPDX-License-Identifier: Apache-2.0
// Input and output of a debugger in the program. They go through a socket; each message is a whole text. The caller of
// worker.debug is the terminal.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#define DEBUG_METHOD "worker.debug" // no method of a class has a dot in its name
#define DEBUG_MAX ((size_t)1 << 20)

void debug_install(int fd); // -1 = the program allows no debugger
// args: a list with the text that was typed, which may be empty. Appends what the debugger has printed since the last
// call. `code`: the client has the right to send code. Does not wait. ERR_FORBIDDEN, ERR_INVALID; ERR_LIMIT: the
// debugger does not read.
int debug_turn(const char *args, size_t len, bool code, struct buf *out, struct err *err);
