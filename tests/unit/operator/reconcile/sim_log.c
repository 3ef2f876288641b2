// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/sim_log.h"

#include "common/base/mem.h"
#include "tests/unit/support/store_gone.h"

#include <inttypes.h>
#include <stdlib.h>

void sim_log_done(struct sim_log *l)
{
    for (size_t i = 0; i < l->n; i++)
        object_unref(l->list[i].now);
    for (size_t i = 0; i < l->n_kept; i++)
        object_unref(l->kept[i]);
    free(l->list);
    free(l->kept);
}

const char *sim_log_version(struct sim_log *l)
{
    return arena_printf(l->arena, "%" PRId64, ++l->version);
}

void sim_log_add(struct sim_log *l, enum kind kind, const char *name, const struct object *now)
{
    if (l->n == l->size) {
        l->size = l->size ? l->size * 2 : 256;
        l->list = xrealloc(l->list, l->size, sizeof *l->list);
    }
    if (now)
        object_ref(now);
    l->list[l->n++] = (struct sim_change){kind, arena_strdup(l->arena, name), now};
}

void sim_log_keep(struct sim_log *l, const struct object *o)
{
    if (l->n_kept == l->size_kept) {
        l->size_kept = l->size_kept ? l->size_kept * 2 : 64;
        l->kept = xrealloc(l->kept, l->size_kept, sizeof *l->kept);
    }
    l->kept[l->n_kept++] = o;
}

// Mirrors

void sim_mirror_init(struct sim_mirror *m, const enum kind *kinds, size_t n)
{
    *m = (struct sim_mirror){.kinds = kinds, .n_kinds = n};
    for (size_t i = 0; i < n; i++)
        m->stores[kinds[i]] = store_new(kinds[i]);
}

void sim_mirror_done(struct sim_mirror *m)
{
    for (size_t i = 0; i < m->n_kinds; i++)
        store_free(m->stores[m->kinds[i]]);
}

// Takes so many entries of one kind, but only from the first `end` entries of the log.
static void follow(struct sim_mirror *m, const struct sim_log *l, enum kind kind, size_t entries, size_t end)
{
    for (size_t *seen = &m->seen[kind]; entries && *seen < end; ++*seen) {
        const struct sim_change *c = &l->list[*seen];
        if (c->kind != kind)
            continue;
        entries--;
        if (c->now)
            store_put(m->stores[kind], c->now);
        else
            store_gone(m->stores[kind], kind == KIND_NODE ? "" : "ml", c->name);
    }
}

void sim_mirror_follow_all(struct sim_mirror *m, const struct sim_log *l, size_t end)
{
    for (size_t i = 0; i < m->n_kinds; i++)
        follow(m, l, m->kinds[i], SIZE_MAX, end);
}

void sim_mirror_follow_some(struct sim_mirror *m, const struct sim_log *l, struct rand *rand, int percent)
{
    for (size_t i = 0; i < m->n_kinds; i++)
        follow(m, l, m->kinds[i], (int)rand_below(rand, 100) < percent ? SIZE_MAX : rand_below(rand, 10), l->n);
}

struct listener {
    store_fn changed;
    void *ctx;
};

static void there_is(void *ctx, const struct object *o)
{
    const struct listener *l = ctx;
    l->changed(l->ctx, NULL, o);
}

void sim_mirror_subscribe(struct sim_mirror *m, store_fn changed, void *ctx)
{
    struct listener l = {changed, ctx};
    for (size_t i = 0; i < m->n_kinds; i++) {
        store_each(m->stores[m->kinds[i]], there_is, &l);
        store_subscribe(m->stores[m->kinds[i]], changed, ctx);
    }
}

void sim_mirror_account(struct cluster *c, const struct object *old, const struct object *now)
{
    const struct object *any = now ? now : old;
    if (any->kind == KIND_POD && now)
        cluster_set_pod(c, pod_of(now));
    else if (any->kind == KIND_POD)
        cluster_del_pod(c, any->meta.ns, any->meta.name);
    else if (any->kind == KIND_NODE && now)
        cluster_set_node(c, node_of(now));
    else if (any->kind == KIND_NODE)
        cluster_del_node(c, any->meta.name);
}
