// SPDX-License-Identifier: Apache-2.0
// A module for tests that watch ranks from outside: a late rank, and output.
#include <cadre/worker.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LATE_US = 30 * 1000 };

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init;
    (void)init_len;
    *ret_self = worker;
    return CADRE_OK;
}

static cadre_result step(void *self, cadre_call *call)
{
    const cadre_worker *worker = self;
    if (cadre_rank(worker) == cadre_world_size(worker) - 1)
        usleep(LATE_US);
    return cadre_return_int64(call, cadre_rank(worker));
}

// say(text): the same on all ranks; with `own` behind it the rank, so that no two are equal.
static cadre_result say(void *self, cadre_call *call)
{
    const char *text;
    int64_t own = 0;
    cadre_result r = cadre_arg_string(call, 0, "text", &text);
    if (r == CADRE_OK && cadre_arg_int64(call, 1, "own", &own) == CADRE_INVALID_ARGUMENT)
        return CADRE_INVALID_ARGUMENT;
    if (r != CADRE_OK)
        return r;
    if (own)
        printf("%s %d\n", text, cadre_rank(self));
    else
        printf("%s\n", text);
    fflush(stdout);
    return CADRE_OK;
}

static cadre_result trace(void *self, cadre_call *call)
{
    const char *text = cadre_call_traceparent(call);
    (void)self;
    return cadre_return_string(call, text ? text : "none");
}

static cadre_result fail(void *self, cadre_call *call)
{
    (void)self;
    return cadre_fail(call, "no");
}

// A batch of x, to which each rank adds its number.
static cadre_result plus_rank(void *self, cadre_call *call)
{
    cadre_tensor x;
    cadre_result r = cadre_arg_tensor(call, "x", &x);
    if (r != CADRE_OK)
        return r;
    if (strcmp(x.dtype, "I64") != 0)
        return cadre_fail(call, "x must be I64");
    int64_t *sums = malloc(x.len + 1);
    if (!sums)
        return CADRE_OUT_OF_MEMORY;
    for (size_t i = 0; i < x.len / sizeof *sums; i++) {
        memcpy(&sums[i], (const char *)x.data + i * sizeof *sums, sizeof *sums);
        sums[i] += cadre_rank(self);
    }
    x.data = sums;
    r = cadre_return_tensor(call, &x);
    free(sums);
    return r;
}

static cadre_result hold(void *self, cadre_call *call)
{
    (void)self;
    while (!cadre_call_canceled(call))
        usleep(1000);
    return CADRE_CANCELED;
}

static const cadre_method methods[] = {
    {"step", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, step, "the last rank takes 30 ms longer"},
    {"say", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, say, "prints text"},
    {"plus_rank", CADRE_DP_COMPUTE_PROTO, CADRE_EXECUTE_ALL, plus_rank, "x of a batch, and the rank"},
    {"hold", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, hold, "runs until it is canceled"},
    {"trace", CADRE_ONE_TO_ALL, CADRE_EXECUTE_RANK_ZERO, trace, "the traceparent of the call"},
    {"fail", CADRE_ONE_TO_ALL, CADRE_EXECUTE_RANK_ZERO, fail, NULL},
};

static const cadre_class classes[] = {
    {"Watched", create, NULL, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "watched", classes, sizeof classes / sizeof *classes};
    return &info;
}
