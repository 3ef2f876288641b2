// SPDX-License-Identifier: Apache-2.0
// Passes the agent's output on: to our own output, and line by line to clients that listen to the group.
#pragma once

#include "common/base/err.h"
#include "common/base/loop.h"

#include <stddef.h>
#include <stdint.h>

struct tee;

// prefix: in front of each line of our output. `line`: "[rank 3] text" of rank 3, without that. Its other lines only go
// to our output.
struct tee *tee_new(struct loop *loop, const char *prefix,
                    void (*line)(void *ctx, uint32_t rank, const char *text, size_t len), void *ctx);
void tee_free(struct tee *t); // what was not written yet is, as far as that does not block
// Ends for its standard output and error, which the caller closes once the agent has them.
int tee_open(struct tee *t, int ret_fds[2], struct err *err);
void tee_drain(struct tee *t); // the agent has ended: what it has written comes before anything else
