// SPDX-License-Identifier: Apache-2.0
// Weights that move from one group to another, whose mesh may split them in another way. A client begins a transfer,
// with cadre_client_transfer() or cadre.transfer() in Python. The ranks of both groups then move the bytes among
// themselves. All ranks of the receiving group take the new weights, or all keep the old ones, also if a rank dies.
//
//   A class whose weights move has a method with the name CADRE_WEIGHTS_METHOD, which only calls cadre_weights_move():
//
//     static cadre_result move(void *self, cadre_call *call)
//     {
//         struct model *m = self;
//         const uint64_t shape[] = {1024, 4096};
//         const int split[] = {0};                                 // tp splits the rows
//         const uint32_t mesh[] = {4};                             // tp
//         const cadre_weight weights[] = {{"up", "BF16", 2, shape, split, m->up, m->up_len, 0}};
//         cadre_weight_list list;
//         cadre_weight_list_init(&list);
//         list.mesh = mesh, list.n_mesh = 1, list.weights = weights, list.n = 1;
//         return cadre_weights_move(m->weights, call, &list);
//     }
//     ...
//     {CADRE_WEIGHTS_METHOD, CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, move, "weights to or from another group"},
//
//   A rank reads or writes the memory of ranks in the same pod directly, also from GPU to GPU (CUDA IPC), and has
//   connections to the others. Its new weights lie beside the old ones until all ranks have theirs. Then the pages
//   change places, or are copied on the GPU, so addresses stay the same.
#ifndef CADRE_TRANSFER_H
#define CADRE_TRANSFER_H

#include "worker.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_WEIGHTS_METHOD "move_weights"

typedef struct cadre_weight {
    const char *name;
    const char *dtype;     // as in batches: "F32", "BF16", "I64", ...; of elements of whole bytes
    size_t n_dims;         // at most 8
    const uint64_t *shape; // of the whole tensor
    // For each dimension of the mesh: the dimension of the tensor that it splits; -1 = all ranks along it have the same
    // block. A dimension of n elements is split into parts of ceil(n / ranks): the last ones are shorter, or empty.
    // NULL = all ranks have the same tensor.
    const int *split;
    void *data;    // this rank's block, row-major, without gaps
    size_t len;    // bytes of the block; they must match the block that the mesh gives this rank
    int on_device; // 1: it is in memory of the worker's GPU (cadre_device())
} cadre_weight;

typedef struct cadre_weight_list { // the same on all ranks, except for the data
    size_t size;                   // cadre_weight_list_init() sets it
    const uint32_t *mesh;          // sizes of its dimensions, the first varies slowest; their product is the world size
    size_t n_mesh;                 // at most 8; 0 = no tensor is split
    const cadre_weight *weights;
    size_t n;
    void *stream; // a cudaStream_t: work that is on it already is done first; NULL = the default stream
} cadre_weight_list;

static inline void cadre_weight_list_init(cadre_weight_list *l)
{
    memset(l, 0, sizeof *l);
    l->size = sizeof *l;
}

// The memory for the next weights, which an object keeps from one transfer to the next. The kernel may take this memory
// back. One thread uses it at a time.
typedef struct cadre_weights cadre_weights;

CADRE_EXPORT cadre_weights *cadre_weights_new(void);
CADRE_EXPORT void cadre_weights_free(cadre_weights *w); // accepts NULL
// Does what the client's call says, and answers it. This may take as long as the transfer. Until it returns, nothing
// else may change the weights. If the result is not CADRE_OK, the message for the client is written, so `return r;` is
// enough.
CADRE_EXPORT cadre_result cadre_weights_move(cadre_weights *w, cadre_call *call, const cadre_weight_list *list);
// 1: the last cadre_weights_move() has brought new weights.
CADRE_EXPORT int cadre_weights_arrived(const cadre_weights *w);
// The id of the transfer that brought the present weights, "" = none.
CADRE_EXPORT const char *cadre_weights_version(const cadre_weights *w);

#ifdef __cplusplus
}
#endif

#endif
