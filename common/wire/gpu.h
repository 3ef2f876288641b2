// SPDX-License-Identifier: Apache-2.0
// The state of a GPU, as an agent reports it and the operator passes it on (docs/protocol.md, "Agents"):
//
//   {"index":0,"uuid":"GPU-3f0c...","name":"NVIDIA H200","state":"Lost","xid":79,"memoryBytes":...,
//    "ranks":[{"group":"UID","rank":3}]}
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/json.h"
#include "common/base/json_writer.h"

enum {
    GPU_LIST_MAX = 256,
    GPU_RANKS_MAX = 4096, // of all GPUs of a list together
    GPU_TEXT_MAX = 96,    // bytes of a UUID, and of a name
};

enum gpu_value {
    GPU_MEMORY_BYTES,
    GPU_USED_BYTES,
    GPU_TEMPERATURE, // degrees Celsius
    GPU_UTILIZATION, // percent
    GPU_POWER,       // milliwatts
    GPU_XID,         // the last one that the driver has reported, 0 = none
    GPU_ECC_CORRECTED,
    GPU_ECC_UNCORRECTED, // both since the driver was loaded
    GPU_VALUES
};
enum { GPU_UNKNOWN = -1 };

struct gpu_rank {
    const char *group; // UID
    int32_t rank;
};

struct gpu {
    int32_t index; // among the GPUs of the pod, in the driver's order
    bool lost;     // the driver cannot reach it any more: it fell off the bus
    const char *uuid, *name;
    int64_t values[GPU_VALUES]; // GPU_UNKNOWN if the GPU or the driver does not report the value
    struct gpu_rank *ranks;     // ranks that have it
    size_t n_ranks;
};

void gpu_write(struct json_writer *w, const struct gpu *g);
// A list of them; memory from the arena. NULL reads as an empty list. ERR_INVALID, ERR_LIMIT.
int gpu_read_list(const struct json *list, struct arena *a, struct gpu **ret, size_t *ret_n, struct err *err);
struct gpu *gpu_copy_list(const struct gpu *gpus, size_t n, struct arena *a);
