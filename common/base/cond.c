// SPDX-License-Identifier: Apache-2.0
#include "common/base/cond.h"

#include <time.h>

void cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

bool cond_wait_until(pthread_cond_t *c, pthread_mutex_t *mutex, int64_t mono_ms)
{
    const struct timespec at = {mono_ms / 1000, mono_ms % 1000 * 1000000};
    return pthread_cond_timedwait(c, mutex, &at) == 0;
}
