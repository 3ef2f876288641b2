// SPDX-License-Identifier: Apache-2.0
// Pools as areas for blobs: this process's own, and those of others that it has mapped.
#pragma once

#include "common/wire/share.h"
#include "common/ws/pool.h"

#include <sys/types.h>

// What a proxy has for its peers to find out whether they can open its descriptors.
#define MEMORY_PROBE POOL_STEP

struct memory;

struct memory *memory_new(size_t size, struct err *err); // as pool_new()
void memory_free(struct memory *m);                      // blobs in it may outlive it; accepts NULL
struct area *memory_area(struct memory *m);
struct blob *memory_blob(struct memory *m, size_t len); // NULL: there is no room (or `m` is NULL)

// For results that are made in other threads: pool_take(), and then a blob of that.
struct pool *memory_pool(struct memory *m);
struct blob *memory_adopt(struct memory *m, char *data, size_t len);

// The pool of process `pid`, to be read only; `fd` is its descriptor. own: sets `own` of the area, if the kernel has
// room: that process does not see what is written there, and a page that is written to shows no more what that process
// writes. NULL: ERR_UNAVAILABLE where it cannot be opened here; ERR_PROTO where it is no memory of that size, at most 4
// GiB, which can neither shrink nor grow.
struct area *memory_open(pid_t pid, int fd, size_t size, bool own, struct err *err);
// Whether that can be done: `fd` is the probe of process `pid`, as its WELCOME says.
bool memory_reaches(pid_t pid, int64_t fd);

// Of the peer of a Unix socket, 0 = it is none.
pid_t memory_peer(int socket_fd);
