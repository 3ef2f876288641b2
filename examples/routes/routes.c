// SPDX-License-Identifier: Apache-2.0
// A structured argument: set() takes a list of objects, which it reads with cJSON, and pick() uses this list.
//
//   cc -std=c11 -O2 -Wall -Wextra -fPIC -shared -o routes.so routes.c -lcjson
//
//   set([{"to": "small", "weight": 3}, {"to": "large", "weight": 1}])    2 routes
//   pick(2)                                                              "small"
//   pick(3)                                                              "large"
#include <cadre/worker.h>
#include <cjson/cJSON.h>
#include <stdlib.h>

enum { WEIGHT_MAX = 1000 };

struct routes {
    cJSON *list; // checked
    int64_t weight;
};

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)worker, (void)init, (void)init_len;
    *ret_self = calloc(1, sizeof(struct routes));
    return *ret_self ? CADRE_OK : CADRE_OUT_OF_MEMORY;
}

static void destroy(void *self)
{
    struct routes *r = self;
    cJSON_Delete(r->list);
    free(r);
}

static int64_t weight_of(const cJSON *route)
{
    return (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(route, "weight"));
}

// Tells the client which route is wrong, and why. A double can represent every weight that this accepts.
static cadre_result check(cadre_call *call, const cJSON *list, int64_t *ret_weight)
{
    const cJSON *route;
    int i = 0;
    *ret_weight = 0;
    if (!cJSON_IsArray(list) || !cJSON_GetArraySize(list))
        return cadre_fail(call, "routes must be a list of objects with at least one");
    cJSON_ArrayForEach(route, list) {
        double weight = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(route, "weight")); // NaN where it is none
        if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(route, "to")))
            return cadre_fail(call, "routes[%d].to must be a string", i);
        if (!(weight >= 1 && weight <= WEIGHT_MAX) || weight != (double)weight_of(route))
            return cadre_fail(call, "routes[%d].weight must be an integer from 1 to %d", i, WEIGHT_MAX);
        *ret_weight += weight_of(route);
        i++;
    }
    return CADRE_OK;
}

static cadre_result set(void *self, cadre_call *call)
{
    struct routes *r = self;
    const char *text;
    size_t len;
    int64_t weight;
    cadre_result result = cadre_arg_json(call, 0, "routes", &text, &len);
    if (result == CADRE_OK)
        result = cadre_args_only(call, "routes", NULL);
    if (result != CADRE_OK)
        return result;
    cJSON *list = cJSON_ParseWithLength(text, len); // it is JSON: only memory can be missing
    if (!list)
        return CADRE_OUT_OF_MEMORY;
    result = check(call, list, &weight);
    if (result != CADRE_OK) {
        cJSON_Delete(list); // those before stay
        return result;
    }
    cJSON_Delete(r->list);
    *r = (struct routes){list, weight};
    return cadre_return_int64(call, cJSON_GetArraySize(list));
}

static cadre_result pick(void *self, cadre_call *call)
{
    const struct routes *r = self;
    const cJSON *route;
    int64_t ticket;
    cadre_result result = cadre_arg_int64(call, 0, "ticket", &ticket);
    if (result == CADRE_OK)
        result = cadre_args_only(call, "ticket", NULL);
    if (result != CADRE_OK)
        return result;
    if (!r->list || ticket < 0)
        return cadre_fail(call, r->list ? "ticket must be 0 or more" : "no routes yet: call set first");
    ticket %= r->weight;
    cJSON_ArrayForEach(route, r->list) {
        ticket -= weight_of(route);
        if (ticket < 0)
            break;
    }
    return cadre_return_string(call, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(route, "to")));
}

static const cadre_method methods[] = {
    {"set", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, set, "takes a list of routes and returns how many there are"},
    {"pick", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ANY, pick, "returns where the request with this number goes"},
};

static const cadre_class classes[] = {
    {"Routes", create, destroy, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "routes", classes, sizeof classes / sizeof *classes};
    return &info;
}
