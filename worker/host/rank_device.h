// SPDX-License-Identifier: Apache-2.0
// The device of this rank, for its methods and for the objects that it keeps: the GPU that CADRE_DEVICE names. It is
// opened when the first value goes there. So a worker whose values stay in host memory needs no driver. A worker
// without a GPU has no device.
//
// Work that may take the driver long runs on threads beside the loop.
#pragma once

#include "worker/device/copier.h"
#include "worker/device/sweeper.h"
#include "worker/host/method_executor.h"

struct rank_device;

// number: the number of the GPU for cudaSetDevice(); -1 = the rank has none. `on_lost`: called once, from the loop,
// when this process can no longer use the GPU.
struct rank_device *rank_device_new(struct loop *loop, int number, void (*on_lost)(void *ctx, const char *why),
                                    void *ctx);
void rank_device_close(struct rank_device *d); // from now on memory on the device is freed by the end of the process
void rank_device_free(struct rank_device *d);  // when nothing uses it any more; accepts NULL
bool rank_device_has_gpu(const struct rank_device *d); // false for NULL
int rank_device_number(const struct rank_device *d);   // -1 for NULL
// Returns a number that is equal for processes that can open each other's memory. It depends on the boot of the machine
// and on the container.
uint32_t rank_device_place(const struct rank_device *d); // 0 without a GPU

// On any thread: enters and leaves the device. ERR_INVALID: there is no driver or no GPU here. Also the errors of
// device.h.
int rank_device_enter(struct rank_device *d, struct err *err);
void rank_device_leave(struct rank_device *d);
struct device *rank_device_of(struct rank_device *d); // call this between enter and leave
struct sweeper *rank_device_sweeper(struct rank_device *d);
// Call this between enter and leave. Lends a copier, which any thread may give back. `apart`: for values that are
// complete. Such a copy does not wait for what methods do. Otherwise, another rank could wait for the copy while a
// method here waits for that rank.
int rank_device_lend(struct rank_device *d, bool apart, struct copier **ret, struct err *err);
void rank_device_give(struct rank_device *d, struct copier *copier); // accepts NULL
// Do not call this between enter and leave. Copies complete values to the host. `canceled` ends the copy with its call.
// Without it, the limit is COPIER_LIMIT_MS.
int rank_device_download(struct rank_device *d, void *to, const void *from, size_t len, const atomic_bool *canceled,
                         struct err *err);

// On the loop's thread.
void rank_device_submit(struct rank_device *d, struct executor_job *job); // runs the job beside the loop
bool rank_device_withdraw(struct rank_device *d, struct executor_job *job);
void rank_device_lost(struct rank_device *d, const char *why);
