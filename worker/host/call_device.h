// SPDX-License-Identifier: Apache-2.0
// What a call has on the rank's device: its arguments and its result, if they are there, and a stream for its copies.
#pragma once

#include "worker/host/region.h"

struct call_device {
    struct rank_device *rank; // NULL = this worker has no GPU
    struct copier *copier;    // lent; NULL = it was not used yet
    struct region *args;      // values of the arguments, borrowed; NULL = they are in memory of the host
    struct region *result;    // values of the result; NULL = likewise
    struct region *copied;    // those of a result that has come to the host; NULL = none
    struct region **views;    // of the arguments, those that were copied to the device; by number
    size_t n_views;
};

// On the thread that runs the method. In and out of the device.
int call_device_enter(struct call_device *d, struct err *err);
void call_device_leave(struct call_device *d);
// A tensor of the arguments, number i of n, is copied to the device, the first time; *ret: where it is.
int call_device_upload(struct call_device *d, size_t i, size_t n, const void *from, size_t len,
                       const atomic_bool *canceled, void **ret, struct err *err);
// Behind what is on the stream.
int call_device_download(struct call_device *d, void *to, const void *from, size_t len, const atomic_bool *canceled,
                         struct err *err);
int call_device_room(struct call_device *d, size_t len, struct err *err); // for the result
// The values of the arguments, copied if others have them, too: the caller's to write to, and to give back by
// region_unref_now().
int call_device_own_args(struct call_device *d, const atomic_bool *canceled, struct region **ret, struct err *err);
// Waits until all of the call and of the default stream is done. `share`: others may open the result then.
int call_device_settle(struct call_device *d, bool share, const atomic_bool *canceled, struct err *err);
void call_device_drop_result(struct call_device *d);
void call_device_done(struct call_device *d); // on the loop's thread
