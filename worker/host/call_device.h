// SPDX-License-Identifier: Apache-2.0
// The data of a call on the rank's device: its arguments and its result, if they are there, and a stream for copies.
#pragma once

#include "worker/host/region.h"

struct call_device {
    struct rank_device *rank; // NULL = this worker has no GPU
    struct copier *copier;    // lent; NULL = not used yet
    struct region *args;      // values of the arguments, borrowed; NULL = they are in host memory
    struct region *result;    // values of the result; NULL = they are in host memory
    struct region *copied;    // values of a result that was copied to the host; NULL = none
    struct region **views;    // arguments that were copied to the device, by number
    size_t n_views;
};

// Enters and leaves the device. On the thread that runs the method.
int call_device_enter(struct call_device *d, struct err *err);
void call_device_leave(struct call_device *d);
// Copies tensor i of the arguments, which have n tensors, to the device if it is not there yet. *ret: where it is.
int call_device_upload(struct call_device *d, size_t i, size_t n, const void *from, size_t len,
                       const atomic_bool *canceled, void **ret, struct err *err);
// Copies after everything that is on the stream.
int call_device_download(struct call_device *d, void *to, const void *from, size_t len, const atomic_bool *canceled,
                         struct err *err);
int call_device_room(struct call_device *d, size_t len, struct err *err); // allocates the memory of the result
// Returns the values of the arguments, or a copy if somebody else holds them, too. The caller may write to them, and
// gives them back with region_unref().
int call_device_own_args(struct call_device *d, const atomic_bool *canceled, struct region **ret, struct err *err);
// Waits until everything on the stream of the call and on the default stream is done. `share`: other processes can then
// open the result.
int call_device_settle(struct call_device *d, bool share, const atomic_bool *canceled, struct err *err);
void call_device_drop_result(struct call_device *d);
void call_device_done(struct call_device *d); // on the loop's thread
