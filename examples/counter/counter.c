// SPDX-License-Identifier: Apache-2.0
// Counts its calls. Calls of one client run in the order in which they were sent, so two increments give 1 and then 2.
#include <cadre/worker.h>
#include <stdlib.h>

struct counter {
    int64_t value;
};

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)worker;
    (void)init;
    (void)init_len;
    *ret_self = calloc(1, sizeof(struct counter));
    return *ret_self ? CADRE_OK : CADRE_OUT_OF_MEMORY;
}

static cadre_result increment(void *self, cadre_call *call)
{
    struct counter *c = self;
    cadre_result r = cadre_args_only(call, NULL);
    return r == CADRE_OK ? cadre_return_int64(call, ++c->value) : r;
}

static cadre_result get_value(void *self, cadre_call *call)
{
    struct counter *c = self;
    cadre_result r = cadre_args_only(call, NULL);
    return r == CADRE_OK ? cadre_return_int64(call, c->value) : r;
}

static const cadre_method methods[] = {
    {"increment", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, increment, "adds one and returns the count"},
    {"get_value", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, get_value, "returns the count"},
};

static const cadre_class classes[] = {
    {"Counter", create, free, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "counter", classes, sizeof classes / sizeof *classes};
    return &info;
}
