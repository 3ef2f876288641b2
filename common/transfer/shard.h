// SPDX-License-Identifier: Apache-2.0
// The block of a tensor that one rank has, when a mesh of ranks splits the tensor. `split` has one entry for each
// dimension of the mesh: the dimension of the tensor that it splits, or -1 if all ranks along it have the same block. A
// dimension of n elements is split into parts of ceil(n / ranks). The last parts are shorter, or empty, as with
// torch.chunk() and DTensor. If several dimensions of the mesh split one dimension of the tensor, the first one of the
// mesh splits first. Pure.
#pragma once

#include "common/wire/grid.h"

#include <stdbool.h>

enum { SHARD_DIMS_MAX = 8 };

struct shard { // elements from[i] <= x < to[i] of each dimension
    uint64_t from[SHARD_DIMS_MAX], to[SHARD_DIMS_MAX];
    size_t n_dims; // 0 = one element
};

// Part `i` of `n` of the elements *from to *to, which it becomes.
void shard_narrow(uint64_t *from, uint64_t *to, uint64_t i, uint64_t n);
// What `rank` of the mesh has of a tensor of this shape.
void shard_of_rank(const struct grid *mesh, const int *split, uint32_t rank, const uint64_t *shape, size_t n_dims,
                   struct shard *ret);
uint64_t shard_elements(const struct shard *s);
bool shard_overlap(const struct shard *a, const struct shard *b, struct shard *ret); // false: they share no element
// Copies the elements of `part`, each of `size` bytes, from the values of `from` to those of `to`. Both hold the part;
// their values are row-major, without gaps. So `to` = `part` packs, and `from` = `part` unpacks.
void shard_copy(const struct shard *part, size_t size, const struct shard *from, const void *source,
                const struct shard *to, void *destination);
