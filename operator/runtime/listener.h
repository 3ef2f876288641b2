// SPDX-License-Identifier: Apache-2.0
// A listening TCP socket on the loop.
#pragma once

#include "common/base/loop.h"

struct listener;

// `address` and the errors: as for listen_socket_open() (common/base/listen_socket.h). `accepted` owns each new
// (non-blocking) descriptor.
int listener_start(struct loop *loop, const char *address, void (*accepted)(void *ctx, int fd), void *ctx,
                   struct listener **ret, struct err *err);
void listener_stop(struct listener *l); // accepts NULL
