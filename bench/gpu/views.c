// SPDX-License-Identifier: Apache-2.0
// bench-gpu-views DEVICE-ADDRESS HOST-ADDRESS GROUP [--bytes N] [--calls N]: what it costs that a method takes a tensor
// on the GPU. Calls rows() of examples/gpu_tensor, which takes "x" and waits for it, one at a time and in turns: of a
// worker with a GPU, of one without, and of the first with a reference to a tensor that it keeps. Prints the medians in
// microseconds: "device host kept".
#include "bench/lib/samples.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <cadre/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 200, BYTES = 1 << 20, REF_MAX = 4096 };

struct side {
    cadre_client *client;
    const char *group;
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench-gpu-views: error: %s: %s\n", what, why);
    exit(1);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct side open_side(const char *address, const char *group)
{
    cadre_client_options o;
    cadre_client_error error;
    struct side s = {.group = group};
    cadre_client_options_init(&o);
    o.address = address;
    o.ns = "default";
    o.token = "local";
    if (cadre_client_open(&o, &s.client, &error) != CADRE_CLIENT_OK)
        die(address, error.message);
    return s;
}

// A call of rank 0 with these arguments, JSON or a batch; `ret`: its result, NULL = it does not count.
static double call(const struct side *s, const char *method, const void *args, size_t len, bool batch, char *ret)
{
    cadre_client_request r;
    cadre_client_error error;
    cadre_client_json result;
    cadre_client_request_init(&r, method);
    r.group = s->group;
    r.rank = 0;
    if (batch) {
        r.batch = args;
        r.batch_len = len;
    } else {
        r.args = (cadre_client_json){args, len};
    }
    r.by_reference = ret != NULL;
    double begin = now_us();
    if (cadre_client_call(s->client, &r, &result, &error) != CADRE_CLIENT_OK)
        die(method, error.message);
    double us = now_us() - begin;
    if (ret)
        snprintf(ret, REF_MAX, "%.*s", (int)result.len, result.text);
    return us;
}

static void *make(size_t bytes, size_t *ret_len)
{
    cadre_client_error error;
    void *doc;
    _cleanup_(free_p) char *values = xcalloc(1, bytes);
    const cadre_client_tensor t = {
        .name = "x", .dtype = "F32", .shape = {bytes / 4}, .n_dims = 1, .data = values, .len = bytes / 4 * 4};
    if (cadre_client_batch_write(&t, 1, NULL, NULL, &doc, ret_len, &error) != CADRE_CLIENT_OK)
        die("making a batch", error.message);
    return doc;
}

static void usage(void)
{
    fprintf(stderr, "bench-gpu-views: error: usage: bench-gpu-views DEVICE-ADDRESS HOST-ADDRESS GROUP [--bytes N] "
                    "[--calls N]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    int64_t bytes = BYTES, calls = CALLS;
    char ramp[64], ref[REF_MAX];
    struct samples device = {.n = 0}, host = {.n = 0}, kept = {.n = 0};
    size_t len;
    if (argc < 4)
        usage();
    for (int i = 4; i < argc; i += 2) {
        int64_t *to = str_eq(argv[i], "--bytes") ? &bytes : str_eq(argv[i], "--calls") ? &calls : NULL;
        if (!to || i + 1 == argc || !str_to_i64(argv[i + 1], to) || *to < 4)
            usage();
    }
    struct side with = open_side(argv[1], argv[3]), without = open_side(argv[2], argv[3]);
    void *doc = make((size_t)bytes, &len);
    int n = snprintf(ramp, sizeof ramp, "[%lld]", (long long)(bytes / 4));
    call(&with, "ramp", ramp, (size_t)n, false, ref);
    for (int64_t i = 0; i <= MIN(calls, (int64_t)SAMPLES_MAX); i++) {
        double one = call(&with, "rows", doc, len, true, NULL), other = call(&without, "rows", doc, len, true, NULL);
        double third = call(&with, "rows", ref, strlen(ref), false, NULL);
        if (i == 0) // connected, ready, set up
            continue;
        samples_add(&device, one);
        samples_add(&host, other);
        samples_add(&kept, third);
    }
    printf("%.1f %.1f %.1f\n", samples_median(&device), samples_median(&host), samples_median(&kept));
    cadre_client_close(with.client);
    cadre_client_close(without.client);
    free(doc);
    return 0;
}
