// SPDX-License-Identifier: Apache-2.0
// The back end of device.h for NVIDIA's GPUs, over the driver's interface. libcuda.so.1 is loaded when the first GPU is
// opened and is linked with nothing, so that one program runs on nodes with and without GPUs.
#pragma once

#include "worker/device/device_backend.h"

// The GPU whose context the calling thread has, else the one that CADRE_DEVICE names (the agent sets it). ERR_INVALID:
// there is no driver, it is too old, or this rank has no GPU.
int cuda_open(struct device **ret, struct err *err);
// Of programs that use CUDA themselves: ERR_GONE if the GPU is lost to the calling thread. Loads nothing.
int cuda_check_thread(struct err *err);
