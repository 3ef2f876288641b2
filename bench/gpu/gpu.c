// SPDX-License-Identifier: Apache-2.0
// bench-gpu LIBRARY [--calls N] [--pairs N]: what the back end nccl adds to NCCL, on one GPU. LIBRARY:
// libcadre_nccl.so.
//
// One rank reduces four bytes on the device again and again: by NCCL itself, then by the back end, in turns. Both wait
// for the device after each. With one rank no bytes leave the GPU, so this shows the cost of a call and of the wait,
// not of a network. Prints the medians in microseconds: "raw cadre difference".
#include "bench/lib/samples.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/safetensors.h"
#include "sdk/c/include/cadre/collective.h"
#include "worker/collective/backend.h"
#include "worker/device/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 2000, PAIRS = 20, BYTES = 4, LIMIT_MS = 60 * 1000, NCCL_F32 = 7, NCCL_SUM = 0, ID_SIZE = 128 };

struct id {
    char bytes[ID_SIZE];
};

// NCCL as a program uses it that does without Cadre: its calls block until the device has them.
struct raw {
    int (*unique_id)(struct id *ret);
    int (*init)(void **ret, int n, struct id id, int rank);
    int (*all_reduce)(const void *in, void *out, size_t n, int type, int op, void *comm, void *stream);
    int (*destroy)(void *comm);
    void *comm, *stream;
};

struct bench {
    struct device *device;
    struct raw raw;
    const struct backend *backend;
    void *self; // of the back end
    void *in, *out;
    int64_t calls, pairs;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench-gpu: error: %s\n", what);
    exit(1);
}

static void check(int r, const struct err *err)
{
    if (r < 0)
        die(err->msg);
}

static void *symbol(void *object, const char *name)
{
    void *p = object ? dlsym(object, name) : NULL;
    if (!p)
        die(dlerror());
    return p;
}

static void open_raw(struct bench *b)
{
    struct err err = ERR_INIT;
    struct id id;
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *to;
    } symbols[] = {{"ncclGetUniqueId", &b->raw.unique_id},
                   {"ncclCommInitRank", &b->raw.init},
                   {"ncclAllReduce", &b->raw.all_reduce},
                   {"ncclCommDestroy", &b->raw.destroy}};
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *p = symbol(nccl, symbols[i].name);
        memcpy(symbols[i].to, &p, sizeof p);
    }
    check(device_stream_new(b->device, &b->raw.stream, &err), &err);
    if (b->raw.unique_id(&id) != 0 || b->raw.init(&b->raw.comm, 1, id, 0) != 0)
        die("NCCL makes no communicator");
}

static void open_backend(struct bench *b, const char *library)
{
    static const char *const names[] = {"rank 0"};
    const struct backend_config config = {.n = 1, .names = names, .address = "", .limit_ms = LIMIT_MS};
    const struct backend *(*find)(void) = NULL;
    struct err err = ERR_INIT;
    char *blob;
    size_t len;
    void *p = symbol(dlopen(library, RTLD_NOW | RTLD_LOCAL), BACKEND_SYMBOL);
    memcpy(&find, &p, sizeof find);
    b->backend = find();
    if (b->backend->version != BACKEND_VERSION)
        die("the back end is of another version");
    b->self = b->backend->open(&config, &blob, &len, &err);
    if (!b->self)
        die(err.msg);
    check(b->backend->connect(b->self, &blob, &len, &err), &err);
    free(blob);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void reduce_raw(struct bench *b)
{
    struct err err = ERR_INIT;
    int done = 0;
    if (b->raw.all_reduce(b->in, b->out, 1, NCCL_F32, NCCL_SUM, b->raw.comm, b->raw.stream) != 0)
        die("ncclAllReduce() fails");
    while (!done)
        done = device_stream_poll(b->device, b->raw.stream, &err);
    check(done, &err);
}

static void reduce_cadre(struct bench *b)
{
    struct err err = ERR_INIT;
    const struct backend_op op = {.kind = BACKEND_ALL_REDUCE,
                                  .dtype = SAFETENSORS_F32,
                                  .item = BYTES,
                                  .in = b->in,
                                  .out = b->out,
                                  .n = 1,
                                  .reduction = CADRE_SUM,
                                  .limit_ms = LIMIT_MS};
    check(b->backend->run(b->self, &op, &err), &err);
}

static double measure(struct bench *b, void (*reduce)(struct bench *b))
{
    double begin = now_us();
    for (int64_t i = 0; i < b->calls; i++)
        reduce(b);
    return (now_us() - begin) / (double)b->calls;
}

static void run(struct bench *b)
{
    struct samples raw = {.n = 0}, cadre = {.n = 0}, difference = {.n = 0};
    measure(b, reduce_raw); // and what the first calls set up
    measure(b, reduce_cadre);
    for (int64_t i = 0; i < b->pairs; i++) {
        double one = measure(b, reduce_raw), other = measure(b, reduce_cadre);
        samples_add(&raw, one);
        samples_add(&cadre, other);
        samples_add(&difference, other - one);
    }
    printf("%.2f %.2f %.2f\n", samples_median(&raw), samples_median(&cadre), samples_median(&difference));
}

static void usage(void)
{
    fprintf(stderr, "bench-gpu: error: usage: bench-gpu LIBCADRE_NCCL.SO [--calls N] [--pairs N]\n");
    exit(2);
}

static void parse(struct bench *b, int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-')
        usage();
    for (int i = 2; i < argc; i += 2) {
        int64_t *to = str_eq(argv[i], "--calls") ? &b->calls : str_eq(argv[i], "--pairs") ? &b->pairs : NULL;
        if (!to || i + 1 == argc || !str_to_i64(argv[i + 1], to) || *to < 1)
            usage();
    }
}

int main(int argc, char **argv)
{
    struct bench b = {.calls = CALLS, .pairs = PAIRS};
    struct err err = ERR_INIT;
    parse(&b, argc, argv);
    check(device_open(&b.device, &err), &err);
    check(device_enter(b.device, &err), &err);
    check(device_alloc(b.device, BYTES, &b.in, &err), &err);
    check(device_alloc(b.device, BYTES, &b.out, &err), &err);
    open_raw(&b);
    open_backend(&b, argv[1]);
    run(&b);
    b.backend->close(b.self);
    b.raw.destroy(b.raw.comm);
    device_stream_free(b.device, b.raw.stream);
    device_free(b.device, b.in);
    device_free(b.device, b.out);
    device_leave(b.device);
    device_close(b.device);
    return 0;
}
