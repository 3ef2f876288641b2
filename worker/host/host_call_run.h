// SPDX-License-Identifier: Apache-2.0
// A call runs its method. Also the functions of the ABI (cadre/worker.h) for arguments.
#pragma once

#include "worker/host/host_call.h"

// Runs the method, on the executor's thread; the outcome is in the call, never an error of this function.
void call_run(struct cadre_call *c, const cadre_method *method, void *self);
