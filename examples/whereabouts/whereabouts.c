// SPDX-License-Identifier: Apache-2.0
// Tells where a worker is and which GPUs it sees, so that you can look at the result of a placement.
#include <cadre/worker.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init, (void)init_len;
    *ret_self = worker;
    return CADRE_OK;
}

static void done(void *self)
{
    (void)self; // the worker is not ours
}

static cadre_result get_actor_info(void *self, cadre_call *call)
{
    struct addrinfo *found = NULL;
    char host[256], address[NI_MAXHOST], text[sizeof host + sizeof address + 64];
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    (void)self;
    cadre_result only = cadre_args_only(call, NULL);
    if (only != CADRE_OK)
        return only;
    if (gethostname(host, sizeof host) < 0)
        return cadre_fail(call, "this machine has no name");
    int r = getaddrinfo(host, NULL, &hints, &found);
    if (r == 0)
        r = getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST);
    if (found)
        freeaddrinfo(found);
    if (r)
        return cadre_fail(call, "%s: %s", host, gai_strerror(r));
    int len = snprintf(text, sizeof text, "{\"ip_address\":\"%s\",\"host\":\"%s\"}", address, host);
    return cadre_return_json(call, text, (size_t)len);
}

static cadre_result visible_gpus(void *self, cadre_call *call)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    (void)self;
    cadre_result r = cadre_args_only(call, NULL);
    return r == CADRE_OK ? cadre_return_string(call, visible ? visible : "all") : r;
}

static const cadre_method methods[] = {
    {"get_actor_info", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, get_actor_info, "returns its address and host name"},
    {"visible_gpus", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, visible_gpus,
     "returns the indices of the GPUs that it sees, \"\" = none"},
};

static const cadre_class classes[] = {
    {"Whereabouts", create, done, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "whereabouts", classes, sizeof classes / sizeof *classes};
    return &info;
}
