// SPDX-License-Identifier: Apache-2.0
// Pools as areas for blobs: this process's own, and the ones of others that it has mapped.
#pragma once

#include "common/wire/share.h"
#include "common/ws/pool.h"

#include <sys/types.h>

// The size of a proxy's memory that lets peers find out whether they can open its descriptors.
#define MEMORY_PROBE POOL_STEP

struct memory;

struct memory *memory_new(size_t size, struct err *err); // as pool_new()
void memory_free(struct memory *m);                      // blobs in it may outlive it; accepts NULL
struct area *memory_area(struct memory *m);
struct blob *memory_blob(struct memory *m, size_t len); // NULL: there is no room (or `m` is NULL)

// For results that other threads make: they call pool_take(), and then the result becomes a blob here.
struct pool *memory_pool(struct memory *m);
struct blob *memory_adopt(struct memory *m, char *data, size_t len);

// Maps the pool of process `pid` for reading; `fd` is its descriptor. own: also sets `own` of the area, if the kernel
// has room. The process does not see bytes written through `own`. A page with such bytes no longer shows what the
// process writes. NULL: ERR_UNAVAILABLE if it cannot be opened here; ERR_PROTO if it is not memory of that size, at
// most 4 GiB, which can neither shrink nor grow.
struct area *memory_open(pid_t pid, int fd, size_t size, bool own, struct err *err);
// Whether memory_open() works: `fd` is the probe of process `pid`, as its WELCOME says.
bool memory_reaches(pid_t pid, int64_t fd);

// The process at the other end of a Unix socket, 0 for other sockets.
pid_t memory_peer(int socket_fd);
