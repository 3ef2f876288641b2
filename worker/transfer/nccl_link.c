// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_link.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ABORT_MS = 5000 };

// NCCL frees memory of the GPU when it ends a communicator. If the GPU hangs, that waits without a limit, so a thread
// of its own does it. If nobody waits for the thread any more, it frees all that it has.
struct nccl_abort {
    struct device *device;
    void *stream;
    struct nccl_comm comm;
    pthread_mutex_t mutex; // of the two flags
    pthread_cond_t changed;
    bool done, abandoned;
};

// Blocks without bytes may be anywhere.
static bool all_on_device(const struct blocks *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].len && !b->list[i].on_device)
            return false;
    return b->gpu != NULL;
}

// The variable overrides what the maker of a communicator asks for. A call that blocks would have no limit.
static bool calls_block(void)
{
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    return blocking && !str_eq(blocking, "0");
}

static void drop_broken(struct nccl_link *l, const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    if (l->number && nccl_link_poll(l, "", &ignored) != 1)
        nccl_link_drop(l, b);
}

bool nccl_link_fact(struct nccl_link *l, const struct blocks *b, struct nccl_fact *ret)
{
    struct err ignored = ERR_INIT;
    int version = 0;
    if (l->refused || calls_block() || !all_on_device(b))
        return false;
    const struct nccl_library *f = nccl_library_load(&ignored);
    if (!f || f->version(&version) != NCCL_OK || version < NCCL_CONFIG_VERSION)
        return false;
    drop_broken(l, b);
    *ret = (struct nccl_fact){
        .version = (uint32_t)version, .number = l->number, .rank = (uint32_t)l->rank, .n = (uint32_t)l->n};
    memcpy(ret->gpu, device_uuid(b->gpu->device), sizeof ret->gpu);
    return true;
}

int nccl_link_unique_id(struct nccl_id *ret, struct err *err)
{
    const struct nccl_comm none = {.f = nccl_library_load(err)};
    int result = none.f ? none.f->unique_id(ret) : NCCL_OK;
    return !none.f ? err->code : result == NCCL_OK ? 0 : nccl_comm_fail(&none, result, "a unique id", err);
}

int nccl_link_begin(struct nccl_link *l, uint64_t number, int rank, int n, const struct nccl_id *id, struct err *err)
{
    nccl_link_drop(l, NULL);
    *l = (struct nccl_link){.number = number, .rank = rank, .n = n, .comm = {.f = nccl_library_load(err)}};
    int r = l->comm.f ? device_open(&l->device, err) : err->code;
    if (r == 0)
        r = device_stream_new_apart(l->device, &l->stream, err);
    return r < 0 ? r : nccl_comm_begin(&l->comm, n, rank, id, err);
}

int nccl_link_poll(const struct nccl_link *l, const char *what, struct err *err)
{
    return nccl_comm_poll(&l->comm, what, err);
}

// Kernels that wait for other members use the memory of both sides until they end.
static void let_copies_wait(const struct nccl_link *l, const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    if (b && l->stream)
        (void)copier_join(b->gpu->copier, l->stream, &ignored);
}

static void nccl_abort_free(struct nccl_abort *a)
{
    struct err ignored = ERR_INIT;
    if (device_enter(a->device, &ignored) == 0) {
        device_stream_free(a->device, a->stream);
        device_leave(a->device);
    }
    device_close(a->device);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}

static void *nccl_abort_run(void *arg)
{
    struct nccl_abort *a = arg;
    struct err ignored = ERR_INIT;
    if (device_enter(a->device, &ignored) == 0) {
        nccl_comm_abort(&a->comm);
        device_leave(a->device);
    }
    pthread_mutex_lock(&a->mutex);
    a->done = true;
    bool abandoned = a->abandoned;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    if (abandoned)
        nccl_abort_free(a);
    return NULL;
}

static pthread_t nccl_abort_begin(struct nccl_abort *a)
{
    pthread_t thread;
    pthread_mutex_init(&a->mutex, NULL);
    cond_init(&a->changed);
    if (pthread_create(&thread, NULL, nccl_abort_run, a) != 0)
        abort(); // no thread: nothing can run
    return thread;
}

static void nccl_abort_wait(struct nccl_abort *a)
{
    int64_t until = clock_mono_ms(&clock_system) + ABORT_MS;
    pthread_mutex_lock(&a->mutex);
    while (!a->done && cond_wait_until(&a->changed, &a->mutex, until))
        continue;
    pthread_mutex_unlock(&a->mutex);
}

static void nccl_abort_leave(struct nccl_abort *a, pthread_t thread)
{
    pthread_mutex_lock(&a->mutex);
    bool done = a->done;
    a->abandoned = !done;
    pthread_mutex_unlock(&a->mutex);
    if (!done) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    nccl_abort_free(a);
}

void nccl_link_drop(struct nccl_link *l, const struct blocks *b)
{
    struct err ignored = ERR_INIT;
    if (l->device) {
        struct nccl_abort *a = xcalloc(1, sizeof *a);
        *a = (struct nccl_abort){.device = l->device, .stream = l->stream, .comm = l->comm};
        pthread_t thread = nccl_abort_begin(a);
        nccl_abort_wait(a);
        if (device_enter(l->device, &ignored) == 0) {
            let_copies_wait(l, b);
            device_leave(l->device);
        }
        nccl_abort_leave(a, thread);
    }
    *l = (struct nccl_link){.refused = l->refused};
}
