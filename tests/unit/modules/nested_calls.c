// SPDX-License-Identifier: Apache-2.0
// Methods that call: in circles, in two steps, for longer than anybody waits.
#include <cadre/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static cadre_result create(cadre_worker *worker, const char *init, size_t len, void **ret)
{
    static const char *const beside[] = {"beside"};
    (void)init, (void)len;
    *ret = worker;
    return cadre_concurrency_group(worker, "beside", 1, beside, 1);
}

// call(method, rank, args): what a client would get.
static cadre_result call_one(void *self, cadre_call *call)
{
    cadre_request r;
    const char *method, *json;
    size_t len;
    (void)self;
    cadre_result result = cadre_arg_string(call, 0, "method", &method);
    if (result != CADRE_OK)
        return result;
    cadre_request_init(&r, method);
    if (cadre_arg_int64(call, 1, "rank", &r.rank) != CADRE_OK)
        r.rank = -1;
    if (cadre_arg_json(call, 2, "args", &json, &len) == CADRE_OK) {
        r.args = json;
        r.args_len = len;
    }
    cadre_arg_int64(call, 3, "timeoutMs", &r.timeout_ms);
    result = cadre_group_call(call, &r, &json, &len);
    return result == CADRE_OK ? cadre_return_json(call, json, len) : result;
}

// many(n, rank): n calls of double(i), all under way at a time, got from the last to the first.
static cadre_result many(void *self, cadre_call *call)
{
    int64_t n, rank, sum = 0;
    uint64_t ids[1000];
    (void)self;
    cadre_result r = cadre_arg_int64(call, 0, "n", &n);
    if (r == CADRE_OK)
        r = cadre_arg_int64(call, 1, "rank", &rank);
    for (int64_t i = 0; i < n && r == CADRE_OK; i++) {
        cadre_request q;
        char args[32];
        cadre_request_init(&q, "twice");
        q.rank = rank;
        q.args = args;
        q.args_len = (size_t)snprintf(args, sizeof args, "[%d]", (int)i);
        r = cadre_group_start(call, &q, &ids[i]);
    }
    for (int64_t i = n; i-- > 0 && r == CADRE_OK;) {
        const char *json;
        size_t len;
        char number[24];
        r = cadre_group_get(call, ids[i], &json, &len);
        snprintf(number, sizeof number, "%.*s", r == CADRE_OK ? (int)len : 0, r == CADRE_OK ? json : "");
        sum += strtoll(number, NULL, 10);
    }
    if (r == CADRE_OK && n && cadre_group_get(call, ids[0], NULL, NULL) != CADRE_INVALID_ARGUMENT)
        return cadre_fail(call, "a call is got once");
    return r == CADRE_OK ? cadre_return_int64(call, sum) : r;
}

static cadre_result twice(void *self, cadre_call *call)
{
    int64_t x;
    (void)self;
    cadre_result r = cadre_arg_int64(call, 0, "x", &x);
    return r == CADRE_OK ? cadre_return_int64(call, 2 * x) : r;
}

// Until nobody wants it.
static cadre_result hold(void *self, cadre_call *call)
{
    cadre_worker *w = self;
    printf("rank %d holds\n", cadre_rank(w));
    while (!cadre_call_canceled(call))
        usleep(1000);
    printf("rank %d lets go\n", cadre_rank(w));
    return CADRE_CANCELED;
}

// Starts hold() on a rank, and leaves.
static cadre_result leave(void *self, cadre_call *call)
{
    cadre_request r;
    uint64_t id;
    (void)self;
    cadre_request_init(&r, "hold");
    cadre_result result = cadre_arg_int64(call, 0, "rank", &r.rank);
    if (result == CADRE_OK)
        result = cadre_group_start(call, &r, &id);
    cadre_request_init(&r, "twice");
    r.rank = 2;
    r.args = "[4]";
    r.args_len = 3;
    const char *json;
    size_t len;
    if (result == CADRE_OK)
        result = cadre_group_call(call, &r, &json, &len);
    return result == CADRE_OK ? cadre_return_json(call, json, len) : result;
}

static const cadre_method methods[] = {
    {"call", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, call_one, NULL},
    {"beside", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, twice, NULL},
    {"many", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, many, NULL},
    {"twice", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, twice, NULL},
    {"hold", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, hold, NULL},
    {"leave", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, leave, NULL},
};

static const cadre_class classes[] = {{"Caller", create, NULL, methods, sizeof methods / sizeof *methods}};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "nested_calls", classes, 1};
    return &info;
}
