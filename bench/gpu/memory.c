// SPDX-License-Identifier: Apache-2.0
// bench-gpu-memory [--bytes N] [--rounds N]: how fast worker/device moves bytes, beside the driver itself on the same
// memory, in turns. A line each: NAME CADRE DRIVER RATIO, in GB/s; of all rounds, the median of Cadre and of the ratio,
// and the driver's best.
//
//   pinned-up, pinned-down      between pinned memory and the GPU
//   pageable-up, pageable-down  between other memory and the GPU; Cadre's copier against the driver's own way
//   ipc                         from memory of another process, against a copy within this process
//
// The last line, "copy-us N": how long 1 MiB takes from pageable memory to the GPU, waited for.
#include "bench/lib/samples.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/device/copier.h"
#include "worker/device/device.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, WAIT_MS = 60 * 1000, SMALL = 1 << 20 };

struct driver {
    int (*up)(uint64_t to, const void *from, size_t len);
    int (*down)(void *to, uint64_t from, size_t len);
    int (*across)(uint64_t to, uint64_t from, size_t len);
};

struct bench {
    struct device *device;
    struct copier *copier;
    struct driver driver;
    void *memory, *other; // of the GPU
    char *pinned, *pageable;
    struct device_mapping foreign; // of another process
    size_t bytes;
    int64_t rounds;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench-gpu-memory: error: %s\n", what);
    exit(1);
}

static void check(int r, const struct err *err)
{
    if (r < 0)
        die(err->msg);
}

static void check_driver(int code)
{
    if (code)
        die("the driver does not copy");
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void find_driver(struct driver *d)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const struct {
        const char *name;
        void *to;
    } symbols[] = {{"cuMemcpyHtoD_v2", &d->up}, {"cuMemcpyDtoH_v2", &d->down}, {"cuMemcpyDtoD_v2", &d->across}};
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *p = library ? dlsym(library, symbols[i].name) : NULL;
        if (!p)
            die(dlerror());
        memcpy(symbols[i].to, &p, sizeof p);
    }
}

// Ways to move all bytes, waited for.

static void copy_on_stream(struct bench *b, void *to, const void *from)
{
    struct err err = ERR_INIT;
    check(device_copy(b->device, to, from, b->bytes, copier_stream(b->copier), &err), &err);
    check(device_stream_wait(b->device, copier_stream(b->copier), WAIT_MS, NULL, &err), &err);
}

static void pinned_up(struct bench *b)
{
    copy_on_stream(b, b->memory, b->pinned);
}

static void pinned_down(struct bench *b)
{
    copy_on_stream(b, b->pinned, b->memory);
}

static void pageable_up(struct bench *b)
{
    struct err err = ERR_INIT;
    check(copier_upload(b->copier, b->memory, b->pageable, b->bytes, WAIT_MS, NULL, &err), &err);
    check(copier_wait(b->copier, WAIT_MS, NULL, &err), &err);
}

static void pageable_down(struct bench *b)
{
    struct err err = ERR_INIT;
    check(copier_download(b->copier, b->pageable, b->memory, b->bytes, WAIT_MS, NULL, &err), &err);
}

static void from_other_process(struct bench *b)
{
    copy_on_stream(b, b->memory, b->foreign.memory);
}

static void driver_pinned_up(struct bench *b)
{
    check_driver(b->driver.up((uintptr_t)b->memory, b->pinned, b->bytes));
}

static void driver_pinned_down(struct bench *b)
{
    check_driver(b->driver.down(b->pinned, (uintptr_t)b->memory, b->bytes));
}

static void driver_pageable_up(struct bench *b)
{
    check_driver(b->driver.up((uintptr_t)b->memory, b->pageable, b->bytes));
}

static void driver_pageable_down(struct bench *b)
{
    check_driver(b->driver.down(b->pageable, (uintptr_t)b->memory, b->bytes));
}

// The driver does not wait for a copy on the device: Cadre's wait does.
static void driver_across(struct bench *b)
{
    struct err err = ERR_INIT;
    check_driver(b->driver.across((uintptr_t)b->memory, (uintptr_t)b->other, b->bytes));
    check(device_stream_wait(b->device, NULL, WAIT_MS, NULL, &err), &err);
}

static double speed(struct bench *b, void (*move)(struct bench *b))
{
    double begin = now_s();
    move(b);
    return (double)b->bytes / (now_s() - begin) / 1e9;
}

static void measure(struct bench *b, const char *name, void (*cadre)(struct bench *b), void (*driver)(struct bench *b))
{
    struct samples ours = {.n = 0}, theirs = {.n = 0}, ratios = {.n = 0};
    speed(b, cadre); // what the first ones set up
    speed(b, driver);
    for (int64_t i = 0; i < b->rounds; i++) {
        samples_add(&ours, speed(b, cadre));
        samples_add(&theirs, speed(b, driver));
    }
    double best = samples_quantile(&theirs, 1);
    for (size_t i = 0; i < ours.n; i++)
        samples_add(&ratios, ours.values[i] / best);
    printf("%s %.2f %.2f %.4f\n", name, samples_median(&ours), best, samples_median(&ratios));
    fflush(stdout);
}

static void measure_small(struct bench *b)
{
    struct samples us = {.n = 0};
    struct err err = ERR_INIT;
    for (int64_t i = 0; i < b->rounds + 1; i++) {
        double begin = now_s();
        check(copier_upload(b->copier, b->memory, b->pageable, SMALL, WAIT_MS, NULL, &err), &err);
        check(copier_wait(b->copier, WAIT_MS, NULL, &err), &err);
        if (i)
            samples_add(&us, (now_s() - begin) * 1e6);
    }
    printf("copy-us %.1f\n", samples_median(&us));
}

// The other process: has memory of the GPU until it is ended.
static _Noreturn void be_owner(size_t bytes, int out)
{
    struct device *d;
    struct device_handle handle;
    struct err err = ERR_INIT;
    void *memory;
    check(device_open(&d, &err), &err);
    check(device_enter(d, &err), &err);
    check(device_alloc(d, bytes, &memory, &err), &err);
    check(device_export(d, memory, &handle, &err), &err);
    if (write(out, &handle, sizeof handle) != sizeof handle)
        die("the handle is not taken");
    for (;;)
        pause();
}

static pid_t start_owner(size_t bytes, int *ret_in)
{
    int ends[2];
    if (pipe(ends) != 0)
        die("no pipe");
    pid_t pid = fork(); // before this process has the driver
    if (pid == 0)
        be_owner(bytes, ends[1]);
    close(ends[1]);
    *ret_in = ends[0];
    return pid;
}

static void set_up(struct bench *b, int in)
{
    struct err err = ERR_INIT;
    struct device_handle handle;
    find_driver(&b->driver);
    check(device_open(&b->device, &err), &err);
    check(device_enter(b->device, &err), &err);
    check(copier_new(b->device, true, &b->copier, &err), &err);
    check(device_alloc(b->device, b->bytes, &b->memory, &err), &err);
    check(device_alloc(b->device, b->bytes, &b->other, &err), &err);
    check(device_pin(b->device, b->bytes, (void **)&b->pinned, &err), &err);
    b->pageable = xmalloc(b->bytes);
    memset(b->pageable, 1, b->bytes);
    memset(b->pinned, 2, b->bytes);
    if (read(in, &handle, sizeof handle) != sizeof handle)
        die("the other process has no memory of the GPU");
    check(device_import(b->device, &handle, &b->foreign, &err), &err);
}

static void usage(void)
{
    fprintf(stderr, "bench-gpu-memory: error: usage: bench-gpu-memory [--bytes N] [--rounds N]; N from %d and 1\n",
            SMALL);
    exit(2);
}

int main(int argc, char **argv)
{
    struct bench b = {.bytes = (size_t)256 << 20, .rounds = ROUNDS};
    struct err err = ERR_INIT;
    int64_t bytes = (int64_t)b.bytes;
    int in;
    for (int i = 1; i < argc; i += 2) {
        int64_t *to = str_eq(argv[i], "--bytes") ? &bytes : str_eq(argv[i], "--rounds") ? &b.rounds : NULL;
        if (!to || i + 1 == argc || !str_to_i64(argv[i + 1], to) || *to < 1)
            usage();
    }
    if (bytes < SMALL)
        usage();
    b.bytes = (size_t)bytes;
    pid_t owner = start_owner(b.bytes, &in);
    set_up(&b, in);
    measure(&b, "pinned-up", pinned_up, driver_pinned_up);
    measure(&b, "pinned-down", pinned_down, driver_pinned_down);
    measure(&b, "pageable-up", pageable_up, driver_pageable_up);
    measure(&b, "pageable-down", pageable_down, driver_pageable_down);
    measure(&b, "ipc", from_other_process, driver_across);
    measure_small(&b);
    device_unimport(b.device, &b.foreign);
    kill(owner, SIGKILL);
    waitpid(owner, NULL, 0);
    check(copier_free(b.copier, WAIT_MS, &err), &err);
    device_free(b.device, b.memory);
    device_free(b.device, b.other);
    device_unpin(b.device, b.pinned);
    device_leave(b.device);
    device_close(b.device);
    free(b.pageable);
    return 0;
}
