// SPDX-License-Identifier: Apache-2.0
// Methods that take and return batches: every rank gets some of the rows, and the proxy joins the results. Actor adds
// its rank to tensor or column "a", Critic subtracts init.b from it. Both return the rest of the batch unchanged.
#include <cadre/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct model {
    double added; // to each value of "a"
};

static cadre_result make(double added, void **ret_self)
{
    struct model *m = malloc(sizeof *m);
    if (!m)
        return CADRE_OUT_OF_MEMORY;
    m->added = added;
    *ret_self = m;
    return CADRE_OK;
}

static cadre_result create_actor(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init, (void)init_len;
    return make(cadre_rank(worker), ret_self);
}

static cadre_result create_critic(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    double b;
    (void)init, (void)init_len;
    cadre_result r = cadre_init_double(worker, "b", 10, &b);
    return r == CADRE_OK ? make(-b, ret_self) : r;
}

// The arguments belong to the host, so the sum goes into other memory.
static cadre_result add_to(double added, const cadre_tensor *t, void *out)
{
    if (strcmp(t->dtype, "F32") == 0) {
        for (size_t i = 0; i < t->len / sizeof(float); i++)
            ((float *)out)[i] = ((const float *)t->data)[i] + (float)added;
    } else if (strcmp(t->dtype, "F64") == 0) {
        for (size_t i = 0; i < t->len / sizeof(double); i++)
            ((double *)out)[i] = ((const double *)t->data)[i] + added;
    } else if (strcmp(t->dtype, "I64") == 0) {
        for (size_t i = 0; i < t->len / sizeof(int64_t); i++)
            ((int64_t *)out)[i] = ((const int64_t *)t->data)[i] + (int64_t)added;
    } else {
        return CADRE_INVALID_ARGUMENT;
    }
    return CADRE_OK;
}

static cadre_result return_sum(cadre_call *call, double added, const cadre_tensor *t)
{
    void *out = malloc(t->len + 1);
    if (!out)
        return CADRE_OUT_OF_MEMORY;
    cadre_tensor sum = *t;
    sum.data = out;
    cadre_result r = add_to(added, t, out);
    if (r == CADRE_OK)
        r = cadre_return_tensor(call, &sum);
    else
        cadre_fail(call, "\"a\" is %s; this class adds to F32, F64 and I64", t->dtype);
    free(out);
    return r;
}

// It takes any other tensors and columns, too, so cadre_args_only() has no place here.
static cadre_result add_to_batch(struct model *m, cadre_call *call)
{
    cadre_tensor t;
    cadre_result r = cadre_arg_tensor(call, "a", &t);
    for (size_t i = 0; r == CADRE_OK && cadre_tensor_at(call, i, &t) == CADRE_OK; i++)
        r = strcmp(t.name, "a") == 0 ? return_sum(call, m->added, &t) : cadre_return_tensor(call, &t);
    const char *name, *json;
    size_t len;
    for (size_t i = 0; r == CADRE_OK && cadre_column_at(call, i, &name, &json, &len) == CADRE_OK; i++)
        r = cadre_return_column(call, name, json, len);
    return r;
}

// The same for {"a": [1, 2]}.
static cadre_result add_to_list(struct model *m, cadre_call *call)
{
    const char *list;
    size_t len, n = 0;
    cadre_result r = cadre_arg_json(call, 0, "a", &list, &len);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "a", NULL);
    if (r != CADRE_OK)
        return r;
    if (*list != '[')
        return cadre_fail(call, "\"a\" must be a list of numbers");
    size_t size = len * 32 + 16; // a number and the text up to the next one take less than 32 bytes
    char *out = malloc(size), *end;
    if (!out)
        return CADRE_OUT_OF_MEMORY;
    n += (size_t)snprintf(out, size, "{\"a\":[");
    for (const char *p = list + 1; p < list + len - 1; p = end + strspn(end, ", ")) {
        double v = strtod(p, &end);
        if (end == p) {
            free(out);
            return cadre_fail(call, "\"a\" must be a list of numbers");
        }
        n += (size_t)snprintf(out + n, size - n, "%s%.9g", p == list + 1 ? "" : ",", v + m->added);
    }
    n += (size_t)snprintf(out + n, size - n, "]}");
    r = cadre_return_json(call, out, n);
    free(out);
    return r;
}

static cadre_result add(void *self, cadre_call *call)
{
    return cadre_is_batch(call) ? add_to_batch(self, call) : add_to_list(self, call);
}

// Counts the rows of any batch, whatever its tensors are called.
static cadre_result rows(void *self, cadre_call *call)
{
    (void)self;
    return cadre_is_batch(call) ? cadre_return_int64(call, (int64_t)cadre_rows(call))
                                : cadre_fail(call, "rows() counts the rows of a batch");
}

static const cadre_method actor_methods[] = {
    {"add", CADRE_DP_COMPUTE_PROTO, CADRE_EXECUTE_ALL, add, "adds the rank to \"a\" of the rows that it gets"},
    {"rows", CADRE_DP_COMPUTE_METRIC, CADRE_EXECUTE_ALL, rows, "how many rows each rank gets"},
};

static const cadre_method critic_methods[] = {
    {"sub", CADRE_DP_COMPUTE_PROTO, CADRE_EXECUTE_ALL, add, "takes init.b off \"a\" of the rows that it gets"},
};

static const cadre_class classes[] = {
    {"Actor", create_actor, free, actor_methods, sizeof actor_methods / sizeof *actor_methods},
    {"Critic", create_critic, free, critic_methods, sizeof critic_methods / sizeof *critic_methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "tensor", classes, sizeof classes / sizeof *classes};
    return &info;
}
