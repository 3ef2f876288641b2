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

enum { SPARE_MAX = EXECUTOR_LANES_MAX * 4 };

struct rank_device {
    struct loop *loop;
    int number;
    bool closing, lost;
    void (*on_lost)(void *ctx, const char *why);
    void *ctx;
    uint32_t place;
    struct executor *executor; // NULL = nothing was submitted yet
    unsigned free_lane;        // a lane of its own, because copies must not wait for what the device does
    struct executor_job sweep; // frees what is in `dead`
    bool sweeping;

    pthread_mutex_t mutex; // of the following members
    void **dead;           // memory that must be freed
    size_t n_dead, dead_size;
    struct device *device; // NULL = not opened yet
    struct spare {
        struct copier *copiers[SPARE_MAX];
        size_t n;
    } spare[2]; // [1]: for copiers that are apart
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

struct rank_device *rank_device_new(struct loop *loop, int number, void (*on_lost)(void *ctx, const char *why),
                                    void *ctx)
{
    struct rank_device *d = xcalloc(1, sizeof *d);
    *d = (struct rank_device){.loop = loop, .number = number, .on_lost = on_lost, .ctx = ctx};
    d->place = number >= 0 ? find_place() : 0;
    pthread_mutex_init(&d->mutex, NULL);
    return d;
}

void rank_device_close(struct rank_device *d)
{
    d->closing = true;
}

// All copiers together get the time of one.
static void free_spare(struct rank_device *d)
{
    int64_t limit_ms = COPIER_LIMIT_MS;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(d->spare); i++)
        while (d->spare[i].n)
            if (copier_free(d->spare[i].copiers[--d->spare[i].n], limit_ms, &err) < 0)
                limit_ms = 0;
    if (!limit_ms)
        fprintf(stderr, "cadre-worker: freeing the GPU: %s\n", err.msg);
}

void rank_device_free(struct rank_device *d)
{
    struct err ignored = ERR_INIT;
    if (!d)
        return;
    if (d->sweeping)
        (void)executor_withdraw(d->executor, &d->sweep);
    executor_free(d->executor);
    free(d->dead);
    if (d->device && device_enter(d->device, &ignored) == 0) {
        free_spare(d);
        device_leave(d->device);
    }
    device_close(d->device);
    pthread_mutex_destroy(&d->mutex);
    free(d);
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
    struct spare *spare = &d->spare[apart];
    pthread_mutex_lock(&d->mutex);
    *ret = spare->n ? spare->copiers[--spare->n] : NULL;
    pthread_mutex_unlock(&d->mutex);
    return *ret ? 0 : copier_new(d->device, apart, ret, err);
}

// There is a spare one for each thread that runs methods: no more are lent at the same time.
void rank_device_give(struct rank_device *d, struct copier *copier)
{
    struct err ignored = ERR_INIT;
    if (!copier)
        return;
    struct spare *spare = &d->spare[copier_is_apart(copier)];
    pthread_mutex_lock(&d->mutex);
    bool full = spare->n == SPARE_MAX;
    if (!full)
        spare->copiers[spare->n++] = copier;
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

// Beside the loop

static struct executor *executor_of(struct rank_device *d)
{
    if (!d->executor) {
        d->executor = executor_new(d->loop, SIZE_MAX);
        d->free_lane = executor_add_lane(d->executor, 1);
    }
    return d->executor;
}

void rank_device_submit(struct rank_device *d, struct executor_job *job)
{
    struct err err = ERR_INIT;
    if (executor_submit(executor_of(d), job, &err) < 0)
        abort(); // it takes any number of jobs
}

static void *take_dead(struct rank_device *d)
{
    pthread_mutex_lock(&d->mutex);
    void *memory = d->n_dead ? d->dead[--d->n_dead] : NULL;
    pthread_mutex_unlock(&d->mutex);
    return memory;
}

static void run_sweep(struct executor_job *job)
{
    struct rank_device *d = CONTAINER_OF(job, struct rank_device, sweep);
    struct err ignored = ERR_INIT;
    void *memory;
    bool entered = rank_device_enter(d, &ignored) == 0;
    while ((memory = take_dead(d)))
        if (entered) // else the GPU is lost, and all its memory, too
            device_free(d->device, memory);
    if (entered)
        rank_device_leave(d);
}

static void sweep_done(struct executor_job *job)
{
    struct rank_device *d = CONTAINER_OF(job, struct rank_device, sweep);
    pthread_mutex_lock(&d->mutex);
    d->sweeping = d->n_dead && !d->closing; // some came after the sweep had seen the last one
    pthread_mutex_unlock(&d->mutex);
    if (d->sweeping)
        rank_device_submit(d, job);
}

void rank_device_drop(struct rank_device *d, void *memory)
{
    if (d->closing)
        return;
    pthread_mutex_lock(&d->mutex);
    MEM_GROW(d->dead, d->n_dead, d->dead_size);
    d->dead[d->n_dead++] = memory;
    pthread_mutex_unlock(&d->mutex);
    if (d->sweeping)
        return;
    d->sweeping = true;
    (void)executor_of(d);
    d->sweep = (struct executor_job){.run = run_sweep, .done = sweep_done, .lane = d->free_lane};
    rank_device_submit(d, &d->sweep);
}

bool rank_device_withdraw(struct rank_device *d, struct executor_job *job)
{
    return executor_withdraw(d->executor, job);
}

void rank_device_lost(struct rank_device *d, const char *why)
{
    if (d->lost || d->closing)
        return;
    d->lost = true;
    d->on_lost(d->ctx, why);
}
