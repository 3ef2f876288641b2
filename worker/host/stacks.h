// SPDX-License-Identifier: Apache-2.0
// The stacks of the threads of a program that runs its methods itself, as text. This works even while a thread holds
// the lock of the program's language. On a signal, the program writes the stacks to a file. Then it raises another
// signal, which tells this module.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#define STACKS_METHOD "worker.stack" // no method of a class has a dot in its name
#define STACKS_MAX ((size_t)256 << 10)

// Call this before the program handles the signal, on the thread that should get the signal. The program interrupts
// that thread anyway, so its view of the threads does not change meanwhile. signo 0: there are no stacks.
void stacks_install(int signo, int fd);
// On the loop's thread. Waits half a second at most. ERR_INVALID: the program shows no stacks. ERR_TIMEOUT: that thread
// takes no signals.
int stacks_read(struct buf *out, struct err *err);
