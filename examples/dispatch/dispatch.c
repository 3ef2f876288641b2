// SPDX-License-Identifier: Apache-2.0
// One method for each way in which a call can reach the ranks. All of them return _x + x + y, where _x is what the
// object was made with (init.x), so that the results show who got which arguments. Nothing but the declared modes
// differs: which ranks run a method, and with what, is decided before it is called.
#include <cadre/worker.h>
#include <stdio.h>
#include <stdlib.h>

struct test_actor {
    double x;
};

// A custom mode, which the proxy gets as data: it takes lists of two, and the ranks get one element in turn.
static cadre_result register_two_to_all(cadre_worker *worker)
{
    int n = cadre_world_size(worker);
    size_t size = (size_t)n * 2 + 64, len = 0;
    char *rule = malloc(size);
    if (!rule)
        return CADRE_OUT_OF_MEMORY;
    len += (size_t)snprintf(rule, size, "{\"elements\": true, \"index\": [");
    for (int rank = 0; rank < n; rank++)
        len += (size_t)snprintf(rule + len, size - len, "%s%d", rank ? "," : "", rank % 2);
    snprintf(rule + len, size - len, "]}");
    cadre_result r = cadre_method_rule(worker, "foo_custom", rule, NULL);
    free(rule);
    return r;
}

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    struct test_actor *t = malloc(sizeof *t);
    (void)init;
    (void)init_len;
    if (!t)
        return CADRE_OUT_OF_MEMORY;
    cadre_result r = cadre_init_double(worker, "x", 0, &t->x);
    if (r == CADRE_OK)
        r = register_two_to_all(worker);
    if (r != CADRE_OK)
        free(t);
    else
        *ret_self = t;
    return r;
}

static cadre_result foo(void *self, cadre_call *call)
{
    struct test_actor *t = self;
    double x, y;
    cadre_result r = cadre_arg_double(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_arg_double(call, 1, "y", &y);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", "y", NULL);
    return r == CADRE_OK ? cadre_return_double(call, t->x + x + y) : r;
}

static const cadre_method methods[] = {
    {"foo_one_to_all", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, foo, "the same x and y for all; one result a rank"},
    {"foo_all_to_all", CADRE_ALL_TO_ALL, CADRE_EXECUTE_ALL, foo, "x and y of each rank; one result a rank"},
    {"foo_custom", CADRE_SPLIT, CADRE_EXECUTE_ALL, foo, "lists of two, rank i takes element i % 2; one result a rank"},
    {"foo_rank_zero", CADRE_ALL_TO_ALL, CADRE_EXECUTE_RANK_ZERO, foo, "rank 0 alone gets x and y; one result"},
};

static const cadre_class classes[] = {
    {"TestActor", create, free, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "dispatch", classes, sizeof classes / sizeof *classes};
    return &info;
}
