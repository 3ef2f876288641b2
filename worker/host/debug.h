// SPDX-License-Identifier: Apache-2.0
// Input and output of a debugger in the program, over a socket whose messages are whole texts. The caller of
// worker.debug is its terminal.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#define DEBUG_METHOD "worker.debug" // no method of a class has a dot in its name
#define DEBUG_MAX ((size_t)1 << 20)

void debug_install(int fd); // -1 = the program lets nobody in
// args: a list with the text that was typed, which may be empty. Adds what the debugger has said since the last call.
// `code`: the client has the right to send code. Waits for nothing. ERR_FORBIDDEN, ERR_INVALID; ERR_LIMIT: the debugger
// does not read.
int debug_turn(const char *args, size_t len, bool code, struct buf *out, struct err *err);
