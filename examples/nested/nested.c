// SPDX-License-Identifier: Apache-2.0
// A worker that calls workers: a Parent's get_work() asks a Child and returns its answer; create_child() creates the
// group of a Child. The Parent's init names the Child:
// {"group": "child"} any rank of another group, {"role": "child", "rank": 1} a role on a rank of its own group.
#include <cadre/worker.h>
#include <stdlib.h>

struct parent {
    char *group, *role; // NULL = its own, none
    int64_t rank;       // -1 = any
};

static char *copy(const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;
    char *p = text ? malloc(size) : NULL;
    return p ? memcpy(p, text, size) : NULL;
}

static void parent_free(void *self)
{
    struct parent *p = self;
    free(p->group);
    free(p->role);
    free(p);
}

static cadre_result parent_create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    const char *group = NULL, *role = NULL;
    struct parent *p = calloc(1, sizeof *p);
    (void)init, (void)init_len;
    if (!p)
        return CADRE_OUT_OF_MEMORY;
    cadre_result r = cadre_init_string(worker, "group", NULL, &group);
    if (r == CADRE_OK)
        r = cadre_init_string(worker, "role", NULL, &role);
    if (r == CADRE_OK)
        r = cadre_init_int64(worker, "rank", -1, &p->rank);
    p->group = copy(group);
    p->role = copy(role);
    if (r == CADRE_OK)
        *ret_self = p;
    else
        parent_free(p);
    return r;
}

static cadre_result get_work(void *self, cadre_call *call)
{
    const struct parent *p = self;
    cadre_request request;
    const char *result;
    size_t len;
    cadre_request_init(&request, "work");
    request.group = p->group;
    request.role = p->role;
    request.rank = p->rank;
    if (p->rank < 0)
        request.execute = CADRE_EXECUTE_ANY;
    cadre_result r = cadre_args_only(call, NULL);
    if (r == CADRE_OK)
        r = cadre_group_call(call, &request, &result, &len);
    return r == CADRE_OK ? cadre_return_json(call, result, len) : r;
}

// create_child(workerGroup): makes the group of a manifest, as its client would with group.create.
static cadre_result create_child(void *self, cadre_call *call)
{
    static const char begin[] = "{\"lifetime\":\"Detached\",\"workerGroup\":";
    const char *manifest, *result;
    size_t len, result_len;
    (void)self;
    cadre_result r = cadre_arg_json(call, 0, "workerGroup", &manifest, &len);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "workerGroup", NULL);
    if (r != CADRE_OK)
        return r;
    char *args = malloc(sizeof begin + len + 1);
    if (!args)
        return CADRE_OUT_OF_MEMORY;
    memcpy(args, begin, sizeof begin - 1);
    memcpy(args + sizeof begin - 1, manifest, len);
    args[sizeof begin - 1 + len] = '}';
    cadre_request request;
    cadre_request_init(&request, "group.create");
    request.args = args;
    request.args_len = sizeof begin + len;
    r = cadre_group_call(call, &request, &result, &result_len);
    free(args);
    return r; // the result says only that the group exists
}

static cadre_result child_create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)worker, (void)init, (void)init_len;
    *ret_self = NULL;
    return CADRE_OK;
}

static cadre_result work(void *self, cadre_call *call)
{
    (void)self;
    cadre_result r = cadre_args_only(call, NULL);
    return r == CADRE_OK ? cadre_return_string(call, "Work done by child") : r;
}

static const cadre_method parent_methods[] = {
    {"create_child", CADRE_ONE_TO_ALL, CADRE_EXECUTE_RANK_ZERO, create_child, "makes the group of a manifest"},
    {"get_work", CADRE_ONE_TO_ALL, CADRE_EXECUTE_RANK_ZERO, get_work, "has a child work, and returns what it says"},
};

static const cadre_method child_methods[] = {
    {"work", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, work, "works"},
};

static const cadre_class classes[] = {
    {"Parent", parent_create, parent_free, parent_methods, sizeof parent_methods / sizeof *parent_methods},
    {"Child", child_create, NULL, child_methods, sizeof child_methods / sizeof *child_methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "nested", classes, sizeof classes / sizeof *classes};
    return &info;
}
