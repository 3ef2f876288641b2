// SPDX-License-Identifier: Apache-2.0
// The device of this rank, for its methods and for what it keeps: the GPU that CADRE_DEVICE names. It is opened when
// the first value goes there, so that a worker whose values stay in memory of the host needs no driver. A worker
// without a GPU has none.
//
// What the driver may take long for, such as to free memory, is done by jobs on a thread of its own, beside the loop.
#pragma once

#include "worker/device/copier.h"
#include "worker/host/method_executor.h"

struct rank_device;

// number: of the GPU, for cudaSetDevice(); -1 = the rank has none. `on_lost`: from the loop, once, when the GPU is of
// no more use to this process.
struct rank_device *rank_device_new(struct loop *loop, int number, void (*on_lost)(void *ctx, const char *why),
                                    void *ctx);
void rank_device_close(struct rank_device *d);         // from now on the end of the process frees what is on the device
void rank_device_free(struct rank_device *d);          // when nothing of it is used; accepts NULL
bool rank_device_has_gpu(const struct rank_device *d); // false for NULL
int rank_device_number(const struct rank_device *d);   // -1 for NULL
// The number of the place where processes can open each other's memory: this boot of the machine, and the container.
uint32_t rank_device_place(const struct rank_device *d); // 0 without a GPU

// On any thread: in and out. ERR_INVALID: there is no driver or no GPU here. And the errors of device.h.
int rank_device_enter(struct rank_device *d, struct err *err);
void rank_device_leave(struct rank_device *d);
struct device *rank_device_of(struct rank_device *d); // inside
// Inside: lends a copier, until it is given back, on any thread. `apart`: for values that are complete, so that they do
// not wait for what methods do: another rank may wait for them while a method here waits for that rank.
int rank_device_lend(struct rank_device *d, bool apart, struct copier **ret, struct err *err);
void rank_device_give(struct rank_device *d, struct copier *copier); // accepts NULL
// Outside: complete values come to the host. Without `canceled`, which ends it with a call, it has COPIER_LIMIT_MS.
int rank_device_download(struct rank_device *d, void *to, const void *from, size_t len, const atomic_bool *canceled,
                         struct err *err);

// On the loop's thread.
void rank_device_drop(struct rank_device *d, void *memory);               // frees it, soon
void rank_device_submit(struct rank_device *d, struct executor_job *job); // beside the loop
bool rank_device_withdraw(struct rank_device *d, struct executor_job *job);
void rank_device_lost(struct rank_device *d, const char *why);
