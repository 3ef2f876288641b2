// SPDX-License-Identifier: Apache-2.0
// Threads that handle no signals: the other threads of the program do.
#pragma once

#include <pthread.h>

// Returns 0, or an errno if no thread can be started.
int thread_start(pthread_t *ret, void *(*run)(void *ctx), void *ctx);
