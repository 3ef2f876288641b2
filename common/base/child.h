// SPDX-License-Identifier: Apache-2.0
// A child that becomes another program.
#pragma once

#include <sys/types.h>

// fork(). In the child, all signals have their default action, and none is blocked. No handler of this process ever
// runs there: the handler of a loop would write to the pipe that the child shares with its parent, and the parent would
// take the child's signal for its own. If the parent has threads, the child may call only what POSIX allows in a signal
// handler.
pid_t child_fork(void);
