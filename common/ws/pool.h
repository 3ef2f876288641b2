// SPDX-License-Identifier: Apache-2.0
// Memory that other processes of this host may read: one memfd of a fixed size, sealed so that it cannot shrink while
// others have it mapped. Pages come with their first use and stay. Free memory is reused from the lowest address,
// because those pages already exist.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define POOL_STEP ((size_t)64 << 10) // blocks begin at a multiple of it, and their sizes are multiples, too

struct pool;

// size: a multiple of POOL_STEP. NULL: the kernel has no memfd, or no room.
struct pool *pool_new(size_t size, struct err *err);
void pool_free(struct pool *p); // taken blocks are gone, too; accepts NULL

// From any thread. NULL: there is no room of that size.
void *pool_take(struct pool *p, size_t len);
void pool_give(struct pool *p, const void *data);

int pool_fd(const struct pool *p);
const char *pool_base(const struct pool *p);
