// SPDX-License-Identifier: Apache-2.0
// The block of a tensor that one rank has, when a mesh of ranks splits the tensor. `split` has one entry for each
// dimension of the mesh: the dimension of the tensor that it splits, or -1 if all ranks along it have the same block. A
// dimension of n elements is split into parts of ceil(n / ranks). The last parts are shorter, or empty, as with
// torch.chunk() and DTensor. If several dimensions of the mesh split one dimension of the tensor, the first one of the
// mesh splits first. Pure.
#pragma once

#include "common/wire/mesh.h"

#include <stdbool.h>

enum { SHARD_DIMS_MAX = 8 };

struct shard { // elements from[i] <= x < to[i] of each dimension
    uint64_t from[SHARD_DIMS_MAX], to[SHARD_DIMS_MAX];
    size_t n_dims; // 0 = one element
};

// Narrows the elements from *from to *to to part `i` of `n` of them.
void shard_narrow(uint64_t *from, uint64_t *to, uint64_t i, uint64_t n);
// The block that `rank` of the mesh has of a tensor with this shape.
void shard_of_rank(const struct mesh *mesh, const int *split, uint32_t rank, const uint64_t *shape, size_t n_dims,
                   struct shard *ret);
uint64_t shard_elements(const struct shard *s);
// The elements of `part` among the values of two blocks that both hold it, run by run. The values of a block are
// row-major, without gaps. So with `to` = `part` they are packed, and with `from` = `part` unpacked.
struct shard_runs {
    uint64_t len;      // bytes of each run
    uint64_t from, to; // where the run begins in the values of each block, in bytes
    // private
    const struct shard *part, *of[2];
    uint64_t at[SHARD_DIMS_MAX];
    size_t size, outer;
};

// `size`: bytes of an element. False: the part has no elements. The shards are borrowed.
bool shard_runs_first(struct shard_runs *r, const struct shard *part, size_t size, const struct shard *from,
                      const struct shard *to);
bool shard_runs_next(struct shard_runs *r); // false: there is none
