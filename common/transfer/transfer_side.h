// SPDX-License-Identifier: Apache-2.0
// A group's description of its weights: its mesh, and how the mesh splits each tensor. Ranks send it to each other as
// bytes, little endian:
//
//   u32 dimensions of the mesh   each: u32 size, u8 length, name
//   u32 tensors                  each: u16 length, name, u8 dtype, u8 dimensions, u64 shape..., i8 split...
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/transfer/shard.h"
#include "common/wire/safetensors.h"

enum { TRANSFER_TENSORS_MAX = 1 << 20, TRANSFER_SIDE_MAX = 48 << 20 };

struct transfer_tensor {
    const char *name;
    enum safetensors_dtype dtype;
    const uint64_t *shape; // of the whole tensor
    size_t n_dims;
    const int *split; // for each dimension of the mesh, as shard_of_rank() takes it
};

// The place of a rank. Equal numbers mean the same node or pod. Pods of different nodes have different numbers.
struct transfer_place {
    uint32_t node, pod;
};

struct transfer_side {
    const char *name; // for messages: "actor"; is not sent
    const struct mesh *mesh;
    const struct transfer_tensor *tensors;
    size_t n;
    const struct transfer_place *places; // of its ranks; are not sent. NULL = all ranks are in one pod
};

// ERR_LIMIT: longer than TRANSFER_SIDE_MAX. ERR_INVALID: a name or a number of dimensions is too long to be sent.
int transfer_side_write(const struct transfer_side *s, struct buf *out, struct err *err);
// `ret` is in the arena, with this name. Splits and shapes are as sent: the plan checks them. ERR_PROTO.
int transfer_side_read(const char *data, size_t len, const char *name, struct arena *a, struct transfer_side *ret,
                       struct err *err);
// Keeps only the tensors with these names, in the order of the side. *ret_missing: the first name that the side does
// not have, NULL = it has all.
void transfer_side_narrow(struct transfer_side *s, const char *const *names, size_t n, struct arena *a,
                          const char **ret_missing);
uint32_t transfer_side_world(const struct transfer_side *s); // ranks of its mesh
