// SPDX-License-Identifier: Apache-2.0
// Decides which GPUs a worker process sees, and which GPU it uses. Pure.
//
// The GPUs of a pod are numbered 0, 1, ... in the order of CUDA_VISIBLE_DEVICES if the pod has it. Otherwise, the order
// is the one of NVIDIA_VISIBLE_DEVICES if a device plugin set a list there, or else the one of the driver. A group has
// all GPUs of the pod. On shared bundles, it has the GPUs of its bundles. Its workers take equal, consecutive shares by
// local rank, unless START lists the GPUs of each worker.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { GPUS_MAX = 256, GPUS_UNKNOWN = -1, GPUS_SHARE = -1 };

enum gpus_visibility {
    GPUS_OWN, // a worker sees its own GPUs only
    GPUS_ALL, // a worker sees all GPUs that its group has in the pod
};

struct gpus {
    enum gpus_visibility visibility;
    int per_worker;     // spec.worker.gpus: 0 = none, GPUS_SHARE = an equal share
    const int *indices; // the GPUs of the pod that the group has; NULL = all
    size_t n_indices;
    int count;                // how many the pod has, used if its environment has no list; GPUS_UNKNOWN
    const char *cuda_visible; // CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES of the pod, NULL = not set
    const char *nvidia_visible;
};

struct gpus_worker {
    int local_rank, local_world_size;
    const int *own; // GPUs of the pod; NULL = a share
    size_t n_own;
};

struct gpus_view {
    const char *visible; // value of CUDA_VISIBLE_DEVICES; NULL = leave it as the pod has it
    int device;          // the number for cudaSetDevice(); -1 = the worker has no GPU
    const char *own;     // names of its own GPUs, as CUDA writes them: "2,3"
};

// ERR_INVALID: the group asks for more than there is.
int gpus_view(const struct gpus *g, const struct gpus_worker *w, struct arena *a, struct gpus_view *ret,
              struct err *err);
