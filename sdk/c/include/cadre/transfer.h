// SPDX-License-Identifier: Apache-2.0
// The plan of a transfer of weights: two groups, each with a mesh that splits the tensors in its own way, and which
// rank of the first sends which block to which rank of the second. Each receiver gets each of its elements once, from
// one sender. The same arguments give the same plan in every process, so nobody has to send it around. It moves
// nothing.
#ifndef CADRE_TRANSFER_H
#define CADRE_TRANSFER_H

#include "worker.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_TRANSFER_DIMS_MAX 8

typedef struct cadre_transfer_tensor {
    const char *name;
    const char *dtype; // as in batches: "F32", "BF16", "I64", ...
    size_t n_dims;
    const uint64_t *shape; // of the whole tensor
    // For each dimension of the mesh: the dimension of the tensor that it splits; -1 = all along it have the same. A
    // dimension of n elements is split into parts of ceil(n / ranks): the last ones are shorter, or empty.
    const int *split;
} cadre_transfer_tensor;

typedef struct cadre_transfer_side {
    const char *name; // for messages: "actor"
    size_t n_dims;
    const uint32_t *mesh; // sizes of its dimensions, the first varies slowest; their product is the number of ranks
    size_t n;
    const cadre_transfer_tensor *tensors;
} cadre_transfer_side;

typedef struct cadre_transfer_piece {
    uint32_t sender, receiver;                                             // ranks, each of its side
    uint32_t source, destination;                                          // the tensor's number on each side
    uint64_t first[CADRE_TRANSFER_DIMS_MAX], end[CADRE_TRANSFER_DIMS_MAX]; // elements of the whole tensor
    uint64_t bytes;
} cadre_transfer_piece;

typedef struct cadre_transfer cadre_transfer;

// Never NULL. No piece has more bytes than piece_max (0 = no limit) and than one element. For cadre_transfer_free().
CADRE_EXPORT cadre_transfer *cadre_transfer_plan(const cadre_transfer_side *from, const cadre_transfer_side *to,
                                                 uint64_t piece_max);
// What is wrong, a sentence each, from number 0 on: tensors that one side does not have, or with another dtype or
// shape. Then there are no pieces. NULL: that was all.
CADRE_EXPORT const char *cadre_transfer_problem(const cadre_transfer *t, size_t i);
// Those of a sender lie together. They live as long as the plan.
CADRE_EXPORT const cadre_transfer_piece *cadre_transfer_pieces(const cadre_transfer *t, size_t *ret_n);
// The block that a rank of a side has of its tensor: elements first[i] <= x < end[i] of each dimension.
CADRE_EXPORT void cadre_transfer_block(const cadre_transfer_side *side, size_t tensor, uint32_t rank, uint64_t *first,
                                       uint64_t *end);
CADRE_EXPORT void cadre_transfer_free(cadre_transfer *t); // accepts NULL

#ifdef __cplusplus
}
#endif

#endif
