// SPDX-License-Identifier: Apache-2.0
// The GPUs of this pod as NVIDIA's driver sees them. NVML comes with the driver (libnvidia-ml.so.1) and is loaded here,
// so one program runs on nodes with and without GPUs. If the driver has trouble, calls may block for long: do not use
// it in a process that has other work.
#pragma once

#include "common/wire/gpu.h"

struct nvml;

// ERR_UNAVAILABLE: there is no driver, or it refuses.
struct nvml *nvml_open(struct err *err);
void nvml_close(struct nvml *n); // accepts NULL
// Returns all GPUs that were there at nvml_open(). A GPU that the driver cannot reach any more stays in the list, as
// lost. Strings are valid until the next call.
const struct gpu *nvml_read(struct nvml *n, size_t *ret_n);
// Waits up to this long for trouble with a GPU (an Xid). True: there was trouble, so read again.
bool nvml_wait(struct nvml *n, int ms);
