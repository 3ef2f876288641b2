// SPDX-License-Identifier: Apache-2.0
// Small blocks that every call allocates and frees, by the thousand if that many are in flight. A thread keeps some
// unused ones. (malloc() keeps seven of a size at hand, and merges and splits the others each time.) Gain: 1.15x as
// many calls a second with 1,000 in flight, over TLS and without (bench/calls). The blocks are malloc()'s: any thread
// may free a block of another one, and free() takes them, too.
#pragma once

#include <stddef.h>

#define SMALL_SIZE ((size_t)256)

// A block of `size` bytes with any contents. It may be kept if it is at most SMALL_SIZE.
void *small_new(size_t size) __attribute__((malloc, returns_nonnull));
void small_free(void *block, size_t size); // `size`: the size that small_new() got. NULL is accepted
