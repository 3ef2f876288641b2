// SPDX-License-Identifier: Apache-2.0
#include "worker/host/rank_device.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDLE_MAX = EXECUTOR_LANES_MAX * 4 };

struct rank_device {
    struct loop *loop;
    int number;
    bool lost;
    void (*on_lost)(void *ctx, const char *why);
    void *ctx;
    uint32_t place;
    struct method_executor *executor; // NULL = nothing was submitted yet
    struct sweeper *sweeper;          // NULL = the rank has no GPU
    bool closing;
    pthread_mutex_t mutex; // of the following members
    struct device *device; // NULL = not opened yet
    struct idle_copiers {
        struct copier *copiers[IDLE_MAX];
        size_t n;
    } idle[2]; // [1]: for copiers that are apart
};

// Hashes files whose content or inode is the same for all processes of a place.
static uint32_t find_place(void)
{
    static const char *const spaces[] = {"/proc/self/ns/ipc", "/proc/self/ns/pid", "/proc/self/ns/user"};
    char text[256] = "";
    struct stat s;
    size_t len = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f && fgets(text, 64, f))
        len = strlen(text);
    if (f)
        fclose(f);
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        if (stat(spaces[i], &s) == 0)
            len += (size_t)snprintf(text + len, sizeof text - len, " %ju", (uintmax_t)s.st_ino);
    uint64_t hash = str_hash(text, len);
    return MAX((uint32_t)(hash ^ hash >> 32), UINT32_C(1));
}

bool rank_device_has_gpu(const struct rank_device *d)
{
    return d && d->number >= 0;
}

int rank_device_number(const struct rank_device *d)
{
    return d ? d->number : -1;
}

uint32_t rank_device_place(const struct rank_device *d)
{
    return d->place;
}

// Using

int rank_device_enter(struct rank_device *d, struct err *err)
{
    int r = 0;
    pthread_mutex_lock(&d->mutex);
    if (d->number < 0)
        r = err_set(err, ERR_INVALID, "this rank has no GPU");
    else if (!d->device)
        r = device_open(&d->device, err);
    pthread_mutex_unlock(&d->mutex);
    return r < 0 ? r : device_enter(d->device, err);
}

void rank_device_leave(struct rank_device *d)
{
    device_leave(d->device);
}

int rank_device_lend(struct rank_device *d, bool apart, struct copier **ret, struct err *err)
{
    struct idle_copiers *idle = &d->idle[apart];
    pthread_mutex_lock(&d->mutex);
    *ret = idle->n ? idle->copiers[--idle->n] : NULL;
    pthread_mutex_unlock(&d->mutex);
    return *ret ? 0 : copier_new(d->device, apart, ret, err);
}

// One is kept for each thread that runs methods: no more are lent at the same time.
void rank_device_give(struct rank_device *d, struct copier *copier)
{
    struct err ignored = ERR_INIT;
    if (!copier)
        return;
    struct idle_copiers *idle = &d->idle[copier_is_apart(copier)];
    pthread_mutex_lock(&d->mutex);
    bool full = idle->n == IDLE_MAX;
    if (!full)
        idle->copiers[idle->n++] = copier;
    pthread_mutex_unlock(&d->mutex);
    if (full && device_enter(d->device, &ignored) == 0) {
        (void)copier_free(copier, COPIER_LIMIT_MS, &ignored);
        device_leave(d->device);
    }
}

int rank_device_download(struct rank_device *d, void *to, const void *from, size_t len, const atomic_bool *canceled,
                         struct err *err)
{
    struct copier *copier;
    int r = rank_device_enter(d, err);
    if (r < 0)
        return r;
    r = rank_device_lend(d, true, &copier, err);
    if (r == 0)
        r = copier_download(copier, to, from, len, canceled ? DEVICE_NO_LIMIT : COPIER_LIMIT_MS, canceled, err);
    rank_device_leave(d);
    rank_device_give(d, copier);
    return r;
}

struct device *rank_device_of(struct rank_device *d)
{
    return d->device;
}

struct sweeper *rank_device_sweeper(struct rank_device *d)
{
    return d->sweeper;
}

// Jobs beside the loop

void rank_device_submit(struct rank_device *d, struct executor_job *job)
{
    struct err err = ERR_INIT;
    if (!d->executor)
        d->executor = method_executor_new(d->loop, SIZE_MAX, false);
    if (method_executor_submit(d->executor, job, &err) < 0)
        abort(); // it takes any number of jobs
}

bool rank_device_withdraw(struct rank_device *d, struct executor_job *job)
{
    return method_executor_withdraw(d->executor, job);
}

void rank_device_lost(struct rank_device *d, const char *why)
{
    if (d->lost || d->closing)
        return;
    d->lost = true;
    d->on_lost(d->ctx, why);
}

// The beginning and the end

struct rank_device *rank_device_new(struct loop *loop, int number, void (*on_lost)(void *ctx, const char *why),
                                    void *ctx)
{
    struct rank_device *d = xcalloc(1, sizeof *d);
    *d = (struct rank_device){.loop = loop, .number = number, .on_lost = on_lost, .ctx = ctx};
    d->place = number >= 0 ? find_place() : 0;
    d->sweeper = number >= 0 ? sweeper_new() : NULL;
    pthread_mutex_init(&d->mutex, NULL);
    return d;
}

void rank_device_close(struct rank_device *d)
{
    d->closing = true;
    sweeper_close(d->sweeper);
}

// All copiers together get the time of one. Returns false if it is over.
static bool free_idle(struct rank_device *d)
{
    int64_t limit_ms = COPIER_LIMIT_MS;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(d->idle); i++)
        while (d->idle[i].n)
            if (copier_free(d->idle[i].copiers[--d->idle[i].n], limit_ms, &err) < 0)
                limit_ms = 0;
    if (!limit_ms)
        fprintf(stderr, "cadre-worker: freeing the GPU: %s\n", err.msg);
    return limit_ms;
}

// If the GPU is not done in time, the end of the process frees the rest: the driver would wait.
static void close_device(struct rank_device *d)
{
    struct err ignored = ERR_INIT;
    bool in_time = true;
    if (d->device && device_enter(d->device, &ignored) == 0) {
        in_time = free_idle(d);
        device_leave(d->device);
    }
    if (in_time)
        device_close(d->device);
}

void rank_device_free(struct rank_device *d)
{
    if (!d)
        return;
    rank_device_close(d);
    method_executor_free(d->executor);
    if (!sweeper_free(d->sweeper)) {
        fprintf(stderr, "cadre-worker: freeing memory of the GPU: it was not done within %d ms\n", SWEEPER_LIMIT_MS);
        return; // the sweeper still uses the device
    }
    close_device(d);
    pthread_mutex_destroy(&d->mutex);
    free(d);
}
