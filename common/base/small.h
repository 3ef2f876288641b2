// SPDX-License-Identifier: Apache-2.0
// Small blocks that come and go with every call, by the thousand where as many are in flight: a thread keeps some of
// those that it has no use for (malloc() keeps seven of a size at hand, and puts the others together and apart again).
// Gain: 1.15x as many calls a second with 1,000 in flight, over TLS and without (bench/calls).
// They are malloc()'s: any thread may give back what another one took, and free() takes them too.
#pragma once

#include <stddef.h>

#define SMALL_SIZE ((size_t)256)

// A block of `size` bytes, with anything in it; one that may be kept up to SMALL_SIZE.
void *small_new(size_t size) __attribute__((malloc, returns_nonnull));
void small_free(void *block, size_t size); // what small_new() was asked for. NULL is accepted
