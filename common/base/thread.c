// SPDX-License-Identifier: Apache-2.0
#include "common/base/thread.h"

#include <signal.h>
#include <stddef.h>

int thread_start(pthread_t *ret, void *(*run)(void *ctx), void *ctx)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // the thread inherits it
    int r = pthread_create(ret, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}
