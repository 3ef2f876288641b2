// SPDX-License-Identifier: Apache-2.0
// The back end of device.h for nodes without a GPU: memory of the process, and streams on which all is done at once. It
// shares nothing with other processes.
#pragma once

#include "worker/device/device_backend.h"

struct device *host_device_open(void);
