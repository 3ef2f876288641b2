// SPDX-License-Identifier: Apache-2.0
// Looks up names of hosts on a thread of libuv.
#pragma once

#include "common/base/loop.h"

struct loop_resolve;
struct addrinfo;

// Looks up the stream addresses of a host without blocking the loop. Calls fn once, with the addresses (freed after the
// call) or with NULL and an error; then the handle is gone. If it is cancelled, it does not call fn.
typedef void (*loop_resolve_fn)(void *ctx, const struct addrinfo *found, const struct err *err);
struct loop_resolve *loop_resolve_new(struct loop *loop, const char *host, const char *port, loop_resolve_fn fn,
                                      void *ctx);
void loop_resolve_cancel(struct loop_resolve *r); // accepts NULL
