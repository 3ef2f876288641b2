// SPDX-License-Identifier: Apache-2.0
// A listening TCP socket on the loop.
#pragma once

#include "common/base/loop.h"

struct listener;

// `address` is "host:port" with a numeric host ("[...]" around an IPv6 address), or ":port" for all addresses of both
// families. `accepted` owns each new (non-blocking) descriptor. Errors name the address and the reason.
int listener_start(struct loop *loop, const char *address, void (*accepted)(void *ctx, int fd), void *ctx,
                   struct listener **ret, struct err *err);
int listener_port(const struct listener *l);
void listener_stop(struct listener *l); // accepts NULL
