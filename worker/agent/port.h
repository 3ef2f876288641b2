// SPDX-License-Identifier: Apache-2.0
// Whether a TCP port of this pod is free to listen on.
#pragma once

#include "common/base/err.h"

// 0: a moment ago it could, on all addresses. ERR_CONFLICT: somebody has it, or we may not.
int port_try(int port, struct err *err);
