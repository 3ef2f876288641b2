// SPDX-License-Identifier: Apache-2.0
// Functions of the stand-in for libcuda.so.1 (cuda_stand_in.c), for tests and for the stand-in for NCCL.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

// The number behind a word of the control file; 1 where there is none behind it, 0 where there is no such line.
int stand_in_control(const char *word);
// Where memory of the device, or of the host, can be read and written here. Only in what runs on a stream.
void *stand_in_memory(const void *memory);
// Behind what is on the stream: `turn` is called on the thread of the device until it says that it is done.
void stand_in_put(void *stream, bool (*turn)(void *ctx), void *ctx);
// It is not called any more, if it is one with this context.
void stand_in_drop(void *ctx);
int stand_in_depth(void); // contexts that this thread has pushed
// A kernel: it gets the memory as the thread of the device sees it. Waits for nothing.
void stand_in_launch(void (*kernel)(void *memory, size_t n, double x), void *memory, size_t n, double x, void *stream);

#pragma GCC visibility pop
