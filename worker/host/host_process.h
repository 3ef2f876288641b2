// SPDX-License-Identifier: Apache-2.0
// This worker process: its rank and its place, from the environment that the agent sets, behind the opaque cadre_worker
// of the ABI.
#pragma once

#include "common/base/err.h"
#include "common/base/json.h"
#include "worker/host/published.h"

#define PROCESS_MESSAGE_SIZE 1024

struct cadre_worker {
    int rank, world_size, local_rank;
    int device;                         // for cudaSetDevice, -1 = no GPU
    const struct json *init;            // while the constructor runs
    struct arena *arena;                // for what is read out of it
    const cadre_class *class;           // likewise while it runs
    struct published published;         // by the constructor
    char message[PROCESS_MESSAGE_SIZE]; // of cadre_create_fail(); "" = none
};

// RANK, WORLD_SIZE, LOCAL_RANK and CADRE_DEVICE. Without any of them this is the only worker, rank 0 of 1, without a
// GPU: so a module can be tried by hand. ERR_INVALID for what makes no sense.
int process_from_env(struct cadre_worker *ret, struct err *err);
