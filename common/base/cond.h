// SPDX-License-Identifier: Apache-2.0
// Condition variables whose waits end by the monotonic clock.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void cond_init(pthread_cond_t *c); // pthread_cond_destroy() frees it
// Call this with the mutex. Waits like pthread_cond_wait(), but returns false at that time, in milliseconds.
bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t mono_ms);
