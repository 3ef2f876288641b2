// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/router_state.h"

#include <string.h>

const struct group *router_group(const struct router *r, const char *uid)
{
    return map_get(&r->by_uid, uid);
}

void router_each_group(const struct router *r, void (*fn)(void *ctx, const struct group *g), void *ctx)
{
    void *g;
    for (size_t i = 0; map_next(&r->by_uid, &i, NULL, &g);)
        fn(ctx, g);
}

const struct group *router_group_named(const struct router *r, const char *ns, const char *name)
{
    char key[GROUP_KEY_SIZE];
    group_key(key, ns, name, strlen(name));
    return map_get(&r->by_key, key);
}

struct group *router_group_of(const struct router *r, const struct group *g)
{
    return map_get(&r->by_uid, g->uid);
}

struct record_part *router_parts(struct router *r, size_t n)
{
    if (n > r->size_parts) {
        r->parts = xrealloc(r->parts, n, sizeof *r->parts);
        r->size_parts = n;
    }
    return r->parts;
}
