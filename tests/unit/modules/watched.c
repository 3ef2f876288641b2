// SPDX-License-Identifier: Apache-2.0
// What is watched from outside: a rank that is late, and what ranks print.
#include <cadre/worker.h>

#include <stdio.h>
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

static const cadre_method methods[] = {
    {"step", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, step, "the last rank takes 30 ms longer"},
    {"say", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, say, "prints text"},
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
