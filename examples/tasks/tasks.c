// SPDX-License-Identifier: Apache-2.0
// Stateless tasks: any rank runs them, whichever has a slot free. A rank has one, or as many as init.slots says.
#include <cadre/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct tasks {
    double seconds; // that example_task() takes
};

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    static const char *const methods[] = {"example_task", "add", "flaky"};
    struct tasks *t = malloc(sizeof *t);
    int64_t slots;
    (void)init, (void)init_len;
    if (!t)
        return CADRE_OUT_OF_MEMORY;
    cadre_result r = cadre_init_double(worker, "seconds", 2, &t->seconds);
    if (r == CADRE_OK)
        r = cadre_init_int64(worker, "slots", 1, &slots);
    if (r == CADRE_OK && slots != 1)
        r = cadre_concurrency_group(worker, "tasks", (unsigned)slots, methods, sizeof methods / sizeof *methods);
    if (r == CADRE_OK)
        *ret_self = t;
    else
        free(t);
    return r;
}

static cadre_result example_task(void *self, cadre_call *call)
{
    const struct tasks *t = self;
    const struct timespec pause = {(time_t)t->seconds, (long)((t->seconds - (double)(time_t)t->seconds) * 1e9)};
    int64_t x;
    cadre_result r = cadre_arg_int64(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", NULL);
    if (r != CADRE_OK)
        return r;
    nanosleep(&pause, NULL);
    return cadre_return_int64(call, x * x);
}

static cadre_result add(void *self, cadre_call *call)
{
    int64_t x, y;
    (void)self;
    cadre_result r = cadre_arg_int64(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_arg_int64(call, 1, "y", &y);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", "y", NULL);
    return r == CADRE_OK ? cadre_return_int64(call, x + y) : r;
}

static cadre_result flaky(void *self, cadre_call *call)
{
    (void)self;
    cadre_result r = cadre_args_only(call, NULL);
    if (r != CADRE_OK)
        return r;
    printf("flaky() runs\n");
    return cadre_fail(call, "it never works");
}

static const cadre_method methods[] = {
    {"example_task", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ANY, example_task, "takes init.seconds and returns x * x"},
    {"add", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ANY, add, "returns x + y"},
    {"flaky", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ANY, flaky, "fails"},
};

static const cadre_class classes[] = {{"Tasks", create, free, methods, sizeof methods / sizeof *methods}};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "tasks", classes, 1};
    return &info;
}
