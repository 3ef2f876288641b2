// SPDX-License-Identifier: Apache-2.0
// This worker process: its rank and its position on the node, from the environment that the agent sets. It is the
// opaque cadre_worker of the ABI.
#pragma once

#include "common/base/err.h"
#include "common/base/json.h"
#include "worker/host/published.h"

#define PROCESS_MESSAGE_SIZE 1024

struct cadre_worker {
    int rank, world_size, local_rank;
    int device;                         // for cudaSetDevice(), -1 = no GPU
    const struct json *init;            // set while the constructor runs
    struct arena *arena;                // for what is read from init
    const cadre_class *class;           // set while the constructor runs
    struct published published;         // by the constructor
    char message[PROCESS_MESSAGE_SIZE]; // the message of cadre_create_fail(); "" = none
};

// Reads RANK, WORLD_SIZE, LOCAL_RANK and CADRE_DEVICE. If none of them is set, this is the only worker, rank 0 of 1,
// without a GPU: so users can try a module by hand. ERR_INVALID: a value is wrong.
int process_from_env(struct cadre_worker *ret, struct err *err);
