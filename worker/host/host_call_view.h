// SPDX-License-Identifier: Apache-2.0
// A call whose arguments or result are tensors on the rank's device. Also implements the functions of the ABI
// (cadre/worker.h) for views.
#pragma once

#include "sdk/c/include/cadre/host.h"
#include "worker/host/host_call.h"

// The method has returned, and its result is on the device. A result that is kept stays there: its head is in
// c->result, its values are in c->device.result. Another result is copied to the host.
cadre_result call_view_write(struct cadre_call *c);
// For the functions of cadre/host.h that take parts. The call's message contains the error, too.
int call_return_parts(struct cadre_call *c, const cadre_host_part *parts, size_t n, void *stream, struct err *err);
