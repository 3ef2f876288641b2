// SPDX-License-Identifier: Apache-2.0
#include "worker/device/sweeper.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/mem.h"
#include "common/base/thread.h"

#include <stdlib.h>

struct dead {
    struct device *device;
    void *memory;
};

struct sweeper {
    pthread_t thread;
    pthread_mutex_t mutex; // of the following members
    pthread_cond_t changed;
    bool closing;
    struct dead *dead; // memory that must be freed
    size_t n_dead, dead_size;
    int64_t free_by_ms; // when the driver has been freeing for too long; 0 = it frees nothing
};

static void free_memory(const struct dead *one)
{
    struct err ignored = ERR_INIT;
    if (device_enter(one->device, &ignored) < 0) // the GPU is lost, and all its memory, too
        return;
    device_free(one->device, one->memory);
    device_leave(one->device);
}

static void *sweep(void *ctx)
{
    struct sweeper *s = ctx;
    pthread_mutex_lock(&s->mutex);
    while (!s->closing) {
        if (!s->n_dead) {
            pthread_cond_wait(&s->changed, &s->mutex);
            continue;
        }
        const struct dead one = s->dead[--s->n_dead];
        s->free_by_ms = clock_mono_ms(&clock_system) + SWEEPER_LIMIT_MS;
        pthread_mutex_unlock(&s->mutex);
        free_memory(&one);
        pthread_mutex_lock(&s->mutex);
        s->free_by_ms = 0;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

struct sweeper *sweeper_new(void)
{
    struct sweeper *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->mutex, NULL);
    cond_init(&s->changed);
    if (thread_start(&s->thread, sweep, s) != 0)
        abort(); // no thread: nothing can run
    return s;
}

void sweeper_close(struct sweeper *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->closing = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

void sweeper_drop(struct sweeper *s, struct device *d, void *memory)
{
    if (!memory)
        return;
    pthread_mutex_lock(&s->mutex);
    if (!s->closing) {
        MEM_GROW(s->dead, s->n_dead, s->dead_size);
        s->dead[s->n_dead++] = (struct dead){d, memory};
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
}

// Call this with the mutex.
static bool is_sweeping(const struct sweeper *s)
{
    return s->free_by_ms || (s->n_dead && !s->closing);
}

bool sweeper_wait(struct sweeper *s, int64_t limit_ms)
{
    int64_t until = clock_mono_ms(&clock_system) + limit_ms;
    bool in_time = true;
    pthread_mutex_lock(&s->mutex);
    while (in_time && is_sweeping(s))
        in_time = cond_wait_until(&s->changed, &s->mutex, s->free_by_ms ? MIN(until, s->free_by_ms) : until);
    bool done = !is_sweeping(s);
    pthread_mutex_unlock(&s->mutex);
    return done;
}

// The second try is for memory that was freed since the first one, even if nothing is being freed any more.
int sweeper_alloc(struct sweeper *s, struct device *d, size_t size, int64_t limit_ms, void **ret, struct err *err)
{
    int r = device_alloc(d, size, ret, err);
    if (r == ERR_NOMEM && sweeper_wait(s, limit_ms)) {
        *err = ERR_INIT;
        r = device_alloc(d, size, ret, err);
    }
    return r;
}

bool sweeper_free(struct sweeper *s)
{
    if (!s)
        return true;
    sweeper_close(s);
    if (!sweeper_wait(s, SWEEPER_LIMIT_MS))
        return false;
    pthread_join(s->thread, NULL);
    free(s->dead);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    free(s);
    return true;
}
