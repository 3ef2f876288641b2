// SPDX-License-Identifier: Apache-2.0
// A number on every rank. It begins as the rank (plus init.start), and add() changes it: call add with one argument for
// all ranks, or with one a rank.
#include <cadre/worker.h>
#include <stdlib.h>

struct accumulator {
    double value;
};

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    double start;
    cadre_result r = cadre_init_double(worker, "start", 0, &start);
    if (r != CADRE_OK)
        return r;
    struct accumulator *a = malloc(sizeof *a);
    if (!a)
        return CADRE_OUT_OF_MEMORY;
    a->value = start + cadre_rank(worker);
    *ret_self = a;
    (void)init;
    (void)init_len;
    return CADRE_OK;
}

static cadre_result add(void *self, cadre_call *call)
{
    struct accumulator *a = self;
    double x;
    cadre_result r = cadre_arg_double(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", NULL);
    if (r != CADRE_OK)
        return r;
    a->value += x;
    return cadre_return_double(call, a->value);
}

static cadre_result get_value(void *self, cadre_call *call)
{
    struct accumulator *a = self;
    cadre_result r = cadre_args_only(call, NULL);
    return r == CADRE_OK ? cadre_return_double(call, a->value) : r;
}

static cadre_result foo_rank_zero(void *self, cadre_call *call)
{
    struct accumulator *a = self;
    double x, y;
    cadre_result r = cadre_arg_double(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_arg_double(call, 1, "y", &y);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", "y", NULL);
    return r == CADRE_OK ? cadre_return_double(call, a->value + x + y) : r;
}

static const cadre_method methods[] = {
    {"add", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, add, "adds x to the value and returns it"},
    {"get_value", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, get_value, "returns the value"},
    {"foo_rank_zero", CADRE_ALL_TO_ALL, CADRE_EXECUTE_RANK_ZERO, foo_rank_zero, "returns rank 0's value + x + y"},
};

static const cadre_class classes[] = {
    {"Accumulator", create, free, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "accumulator", classes, sizeof classes / sizeof *classes};
    return &info;
}
