// SPDX-License-Identifier: Apache-2.0
// The back end of device.h for NVIDIA's GPUs, over the driver's interface. libcuda.so.1 is loaded when the first GPU is
// opened and is linked with nothing, so that one program runs on nodes with and without GPUs.
#pragma once

#include "worker/device/device.h"

int cuda_open(struct device **ret, struct err *err); // device_open_gpu()
int cuda_check_thread(struct err *err);              // device_check_thread()
