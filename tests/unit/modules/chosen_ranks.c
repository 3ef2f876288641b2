// SPDX-License-Identifier: Apache-2.0
// Communicators of the ranks that the caller chooses.
#include <cadre/collective.h>

#include <stdio.h>
#include <stdlib.h>

enum { RANKS_MAX = 8 };

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init;
    (void)init_len;
    *ret_self = worker;
    return CADRE_OK;
}

// A list of numbers.
static size_t take_ranks(const char *json, int ranks[RANKS_MAX])
{
    size_t n = 0;
    char *end = NULL;
    for (const char *at = json + 1; n < RANKS_MAX; at = end + 1) {
        long rank = strtol(at, &end, 10);
        if (end == at)
            break;
        ranks[n++] = (int)rank;
        if (*end != ',')
            break;
    }
    return n;
}

// gather(ranks): [place, size, [the rank of each member]]
static cadre_result gather(void *self, cadre_call *call)
{
    cadre_comm_options o;
    cadre_comm *comm;
    const char *json;
    size_t len;
    int ranks[RANKS_MAX], own = cadre_rank(self), all[RANKS_MAX], n = 0;
    char text[128];
    cadre_result r = cadre_arg_json(call, 0, "ranks", &json, &len);
    if (r != CADRE_OK)
        return r;
    cadre_comm_options_init(&o);
    o.n_ranks = take_ranks(json, ranks);
    o.ranks = ranks;
    r = cadre_comm_new(call, &o, &comm);
    if (r != CADRE_OK)
        return r;
    r = cadre_all_gather(comm, "I32", &own, all, 1);
    if (r == CADRE_OK)
        n = snprintf(text, sizeof text, "[%d,%d,", cadre_comm_rank(comm), cadre_comm_size(comm));
    for (int i = 0; r == CADRE_OK && i < cadre_comm_size(comm); i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", i ? "," : "[", all[i]);
    if (r == CADRE_OK)
        n += snprintf(text + n, sizeof text - (size_t)n, "]]");
    r = r == CADRE_OK ? cadre_return_json(call, text, (size_t)n) : cadre_fail(call, "%s", cadre_comm_error(comm));
    cadre_comm_free(comm);
    return r;
}

static const cadre_method methods[] = {{"gather", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, gather, NULL}};

static const cadre_class classes[] = {{"Chosen", create, NULL, methods, sizeof methods / sizeof *methods}};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "chosen_ranks", classes, 1};
    return &info;
}
