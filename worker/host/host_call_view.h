// SPDX-License-Identifier: Apache-2.0
// A call whose arguments or result are tensors on the rank's device. Also the functions of the ABI (cadre/worker.h) for
// views.
#pragma once

#include "sdk/c/include/cadre/host.h"
#include "worker/host/host_call.h"

// The method has returned, and its result is on the device: there it stays if it is to be kept, as a head in c->result
// and values in c->device.result. Else it comes to the host.
cadre_result call_view_write(struct cadre_call *c);
// The functions of cadre/host.h for parts; an error is in the call's message, too.
int call_return_parts(struct cadre_call *c, const cadre_host_part *parts, size_t n, void *stream, struct err *err);
