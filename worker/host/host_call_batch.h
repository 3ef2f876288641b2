// SPDX-License-Identifier: Apache-2.0
// A call whose arguments or result are a batch. Also the functions of the ABI (cadre/worker.h) for them.
#pragma once

#include "worker/host/host_call.h"

// Reads the arguments of a call that are a batch.
cadre_result call_batch_read(struct cadre_call *c);
// A column of that name as JSON; NULL = none.
const char *call_batch_column(struct cadre_call *c, const char *name, size_t *ret_len);
// The first tensor or column whose name is none of these.
bool call_batch_surplus(struct cadre_call *c, const struct call_names *names, const char **ret_name, size_t *ret_len);
// The tensor of the arguments with that name; else the error for the client.
cadre_result call_batch_find(struct cadre_call *c, const char *name, const struct safetensors_tensor **ret);
// Writes the batch that the method returned as the call's result.
cadre_result call_batch_write(struct cadre_call *c);
