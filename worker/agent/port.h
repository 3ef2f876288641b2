// SPDX-License-Identifier: Apache-2.0
// Tests whether a TCP port of this pod is free to listen on.
#pragma once

#include "common/base/err.h"

// Returns 0 if the port was free on all addresses a moment ago. ERR_CONFLICT: another process uses it, or this process
// is not allowed to.
int port_try(int port, struct err *err);
