// SPDX-License-Identifier: Apache-2.0
// Memory that other processes of this host may read: one memfd of a fixed size, sealed so that it cannot shrink while
// others have it mapped. Pages come with their first use and stay. Free memory is reused from the lowest address,
// because those pages already exist.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define POOL_STEP ((size_t)64 << 10) // what is handed out is a multiple of that, and begins at one

struct pool;

// size: a multiple of POOL_STEP. NULL: the kernel has no memfd, or no room.
struct pool *pool_new(size_t size, struct err *err);
void pool_free(struct pool *p); // what was taken is gone, too; accepts NULL

// From any thread. NULL: there is no room of that size.
void *pool_take(struct pool *p, size_t len);
void pool_give(struct pool *p, const void *data);

int pool_fd(const struct pool *p);
size_t pool_size(const struct pool *p);
const char *pool_base(const struct pool *p);
size_t pool_used(struct pool *p); // bytes that are taken

// A pool of another process, to be read only.
struct pool_view {
    const char *base;
    char *own; // the same once more, to be written to: that process does not see it, and a page that is written to
               // shows no more what that process writes; NULL = none
    size_t size;
    int fd;
};

// Its descriptor `fd`. own: sets v->own, if the kernel has room. ERR_UNAVAILABLE: it cannot be opened here; ERR_PROTO:
// it is no memory of that size, at most POOL_VIEW_MAX, which can neither shrink nor grow.
#define POOL_VIEW_MAX ((size_t)4 << 30)
int pool_view_open(struct pool_view *v, pid_t pid, int fd, size_t size, bool own, struct err *err);
void pool_view_close(struct pool_view *v);
