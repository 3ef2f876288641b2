// SPDX-License-Identifier: Apache-2.0
// Runs the method of a call. Also implements the functions of the ABI (cadre/worker.h) for arguments.
#pragma once

#include "worker/host/host_call.h"

// Runs the method, on the executor's thread. The outcome is in the call.
void call_run(struct cadre_call *c, const cadre_method *method, void *self);
