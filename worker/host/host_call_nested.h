// SPDX-License-Identifier: Apache-2.0
// Calls that a method makes. Also implements the functions of the ABI (cadre/worker.h) for them.
#pragma once

#include "worker/host/host_call.h"

// Writes which methods wait for the next call of this method, as JSON. This method comes last. ERR_LIMIT: they are too
// many.
int call_via(const struct cadre_call *c, struct buf *out, struct err *err);
