// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/nccl_closing.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/mem.h"
#include "common/base/thread.h"

#include <stdio.h>
#include <stdlib.h>

struct nccl_closing {
    struct device *device;
    int (*end)(void *comm);
    void *comm;
    int64_t until_ms;
    pthread_t thread;
    pthread_mutex_t mutex; // of the following members
    pthread_cond_t changed;
    void (*then)(void *ctx); // NULL = the owner has not called nccl_closing_end() yet
    void *ctx;
    bool ended; // NCCL is done
    bool freed; // `then` has returned
    bool left;  // the owner does not wait any more
};

static void destroy(struct nccl_closing *n)
{
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->mutex);
    free(n);
}

static void end_communicator(const struct nccl_closing *n)
{
    struct err ignored = ERR_INIT;
    bool entered = device_enter(n->device, &ignored) == 0;
    if (n->comm)
        (void)n->end(n->comm);
    if (entered)
        device_leave(n->device);
}

static void *run(void *arg)
{
    struct nccl_closing *n = arg;
    end_communicator(n);
    pthread_mutex_lock(&n->mutex);
    n->ended = true;
    pthread_cond_broadcast(&n->changed);
    while (!n->then) // each owner calls nccl_closing_end() at some time
        pthread_cond_wait(&n->changed, &n->mutex);
    pthread_mutex_unlock(&n->mutex);
    n->then(n->ctx);
    pthread_mutex_lock(&n->mutex);
    n->freed = true;
    bool left = n->left;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->mutex);
    if (left)
        destroy(n);
    return NULL;
}

struct nccl_closing *nccl_closing_new(struct nccl_comm *c, bool aborts, struct device *d)
{
    struct nccl_closing *n = xcalloc(1, sizeof *n);
    *n = (struct nccl_closing){.device = d,
                               .end = aborts ? c->f->abort : c->f->destroy,
                               .comm = TAKE_PTR(c->handle),
                               .until_ms = clock_mono_ms(&clock_system) + NCCL_CLOSING_MS};
    pthread_mutex_init(&n->mutex, NULL);
    cond_init(&n->changed);
    if (thread_start(&n->thread, run, n) != 0)
        abort(); // no thread: nothing can run
    return n;
}

bool nccl_closing_wait(struct nccl_closing *n)
{
    pthread_mutex_lock(&n->mutex);
    while (!n->ended && cond_wait_until(&n->changed, &n->mutex, n->until_ms))
        continue;
    bool ended = n->ended;
    pthread_mutex_unlock(&n->mutex);
    return ended;
}

void nccl_closing_end(struct nccl_closing *n, void (*then)(void *ctx), void *ctx)
{
    pthread_t thread = n->thread;
    int64_t until = clock_mono_ms(&clock_system) + NCCL_CLOSING_MS;
    bool waits = nccl_closing_wait(n);
    pthread_mutex_lock(&n->mutex);
    n->then = then;
    n->ctx = ctx;
    pthread_cond_broadcast(&n->changed);
    while (waits && !n->freed)
        waits = cond_wait_until(&n->changed, &n->mutex, until);
    bool freed = n->freed;
    n->left = !freed;
    pthread_mutex_unlock(&n->mutex);
    if (freed) {
        pthread_join(thread, NULL);
        destroy(n);
        return;
    }
    pthread_detach(thread);
    fprintf(stderr, "nccl: a communicator was not freed within %d ms; its memory on the GPU stays until it is\n",
            NCCL_CLOSING_MS);
}
