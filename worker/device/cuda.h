// SPDX-License-Identifier: Apache-2.0
// The GPU of this rank, through NVIDIA's driver. The driver is loaded here, so a program that never uses it also runs
// on nodes without one. Threads enter before they use it, and leave afterwards.
#pragma once

#include "common/base/err.h"

#include <stddef.h>

enum { CUDA_UUID_SIZE = 16, CUDA_UUID_TEXT = 48 };

struct cuda;

// The GPU whose context the calling thread has, else the one that CADRE_DEVICE names (the agent sets it). ERR_INVALID:
// there is no driver, or this rank has no GPU. ERR_IO: the driver fails.
int cuda_open(struct cuda **ret, struct err *err);
void cuda_close(struct cuda *c); // accepts NULL
const unsigned char *cuda_uuid(const struct cuda *c);
void cuda_uuid_text(const unsigned char uuid[CUDA_UUID_SIZE], char ret[CUDA_UUID_TEXT]); // "GPU-3f0c9a52-..."

int cuda_enter(struct cuda *c, struct err *err);
void cuda_leave(struct cuda *c);
// All of these between the two. Streams wait for what was begun on the default stream before, and it for them.
int cuda_alloc(struct cuda *c, size_t size, void **ret, struct err *err);
void cuda_free(struct cuda *c, void *memory); // accepts NULL
int cuda_stream_new(struct cuda *c, void **ret, struct err *err);
void cuda_stream_free(struct cuda *c, void *stream); // accepts NULL
// 1: all of it is done, 0: not yet. ERR_IO: something on it has failed, such as an access to an illegal address.
int cuda_stream_poll(struct cuda *c, void *stream, struct err *err);
