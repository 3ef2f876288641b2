// SPDX-License-Identifier: Apache-2.0
// A call whose arguments or result are a batch. Also implements the functions of the ABI (cadre/worker.h) for batches.
#pragma once

#include "worker/host/host_call.h"

// Reads the arguments of a call that are a batch.
cadre_result call_batch_read(struct cadre_call *c);
// Returns the column with that name as JSON; NULL = none.
const char *call_batch_column(struct cadre_call *c, const char *name, size_t *ret_len);
// Finds the first tensor or column whose name is not in `names`.
bool call_batch_surplus(struct cadre_call *c, const struct call_names *names, const char **ret_name, size_t *ret_len);
// Finds the tensor of the arguments with that name. If there is none, sets the error for the client.
cadre_result call_batch_find(struct cadre_call *c, const char *name, const struct safetensors_tensor **ret);
// Writes the batch that the method returned as the call's result.
cadre_result call_batch_write(struct cadre_call *c);
