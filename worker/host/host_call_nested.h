// SPDX-License-Identifier: Apache-2.0
// Calls that the method of a call makes. Also the functions of the ABI (cadre/worker.h) for them.
#pragma once

#include "worker/host/host_call.h"

// Which methods wait for what this one calls, itself the last: JSON. ERR_LIMIT: too many.
int call_via(const struct cadre_call *c, struct buf *out, struct err *err);
