// SPDX-License-Identifier: Apache-2.0
// Returns its arguments, to try and to measure connections. It keeps nothing, so it needs no object.
#include <cadre/worker.h>

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)worker;
    (void)init;
    (void)init_len;
    *ret_self = NULL;
    return CADRE_OK;
}

// Takes any arguments.
static cadre_result echo(void *self, cadre_call *call)
{
    size_t len;
    const char *args = cadre_args(call, &len);
    (void)self;
    return cadre_is_batch(call) ? cadre_return_batch(call, args, len) : cadre_return_json(call, args, len);
}

static const cadre_method methods[] = {
    {"echo", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, echo, "returns its arguments"},
};

static const cadre_class classes[] = {
    {"Echo", create, NULL, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "echo", classes, sizeof classes / sizeof *classes};
    return &info;
}
