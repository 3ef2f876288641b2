// SPDX-License-Identifier: Apache-2.0
// The stacks of the threads of a program that runs its methods itself, as text, even while a thread holds the lock of
// the program's language. On a signal, the program writes them to a file, and then raises the signal that tells us.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#define STACKS_METHOD "worker.stack" // no method of a class has a dot in its name
#define STACKS_MAX ((size_t)256 << 10)

// Before the program handles the signal. From the thread that is to get it, which the program interrupts anyway: what
// it reads of its threads does not change meanwhile. signo 0: there are none.
void stacks_install(int signo, int fd);
// For the loop's thread; waits for half a second at most. ERR_INVALID: the program has none. ERR_TIMEOUT: that thread
// takes no signals.
int stacks_read(struct buf *out, struct err *err);
