// SPDX-License-Identifier: Apache-2.0
#include "operator/local/claim.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/podtemplate.h"
#include "operator/local/container.h"
#include "operator/reconcile/bundles.h"
#include "operator/reconcile/group_bundles.h"
#include "operator/reconcile/ranges.h"

enum { LIST_MAX = 256 * 1024 };

static const struct resources *needs(int64_t cpu_milli, int64_t gpus, struct arena *a)
{
    struct resources *r = arena_new(a, struct resources);
    r->items = arena_array(a, 2, sizeof *r->items);
    if (cpu_milli > 0)
        r->items[r->n++] = (struct resource){RESOURCE_CPU, cpu_milli};
    if (gpus > 0)
        r->items[r->n++] = (struct resource){RESOURCE_GPU, MIN(gpus, (int64_t)NODES_GPUS_MAX + 1) * 1000};
    return r;
}

int claim_of_group(const struct workergroup *g, const char *uid, struct arena *a, struct nodes_gang *ret,
                   struct err *err)
{
    static const char *const nothing[] = {NULL};
    struct template_facts facts = {0};
    struct container container;
    const char *json = g->spec.template_json;
    int r = json ? template_inspect(json, nothing, a, &facts, err) : 0;
    if (r == 0)
        r = container_read(json, a, &container, err);
    if (r < 0)
        return r;
    const struct resources **each = arena_array(a, (size_t)g->spec.replicas, sizeof *each);
    const struct resources *one = needs(container.cpu_milli, facts.gpus, a);
    for (int32_t i = 0; i < g->spec.replicas; i++)
        each[i] = one;
    *ret = (struct nodes_gang){uid, g->spec.gang.strategy, each, g->spec.replicas};
    return 0;
}

int claim_of_placementgroup(const struct placementgroup *p, const char *uid, struct arena *a, struct nodes_gang *ret,
                            struct err *err)
{
    struct bundles b;
    int r = bundles_expand(&p->spec, a, &b, err);
    if (r == 0)
        r = bundles_check(&b, err);
    if (r < 0)
        return r;
    const struct resources **each = arena_array(a, (size_t)b.n, sizeof *each);
    const struct resources **of_shape = arena_array(a, b.n_shapes, sizeof *of_shape);
    for (size_t i = 0; i < b.n_shapes; i++) {
        const struct amounts *has = &b.shapes[i].resources;
        of_shape[i] = needs(amounts_get(has, "cpu"), amounts_get(has, resource_name(RESOURCE_GPU)) / 1000, a);
    }
    for (int32_t i = 0; i < b.n; i++)
        each[i] = of_shape[b.shape[i]];
    *ret = (struct nodes_gang){uid, p->spec.gang.strategy, each, b.n};
    return 0;
}

struct claim {
    const struct workergroup *g;
    const struct placementgroup *const *named;
    struct claimed_bundle *items;
    int32_t n;
};

static int take_bundle(struct claim *c, size_t of, int32_t bundle, struct err *err)
{
    for (int32_t i = 0; i < c->n; i++)
        if (c->named[c->items[i].of] == c->named[of] && c->items[i].bundle == bundle)
            return err_set(err, ERR_INVALID, "spec.placement.groups names bundle %d of PlacementGroup %s twice", bundle,
                           c->named[of]->obj.meta.name);
    if (c->n < c->g->spec.replicas) // the group may name more bundles than it needs
        c->items[c->n++] = (struct claimed_bundle){of, bundle};
    return 0;
}

static int take_ranges(struct claim *c, size_t of, const char *text, struct err *err)
{
    const int64_t n = bundles_count(&c->named[of]->spec);
    const char *name = c->named[of]->obj.meta.name;
    int32_t first, last;
    int r = 0;
    while (r == 0 && ranges_next(&text, &first, &last)) {
        if (last >= n)
            r = err_set(err, ERR_INVALID,
                        "spec.placement.groups asks for bundle %d of PlacementGroup %s, which has %lld", last, name,
                        (long long)n);
        for (int32_t i = first; i <= last && r == 0; i++)
            r = take_bundle(c, of, i, err);
    }
    if (r == 0 && !text)
        r = err_set(err, ERR_INVALID,
                    "spec.placement.groups: the bundles of PlacementGroup %s are not a list like 0-3,6", name);
    return r;
}

int claim_bundles(const struct workergroup *g, const struct placementgroup *const *named, struct arena *a,
                  struct claimed_bundle **ret, struct err *err)
{
    struct claim c = {g, named, arena_array(a, (size_t)g->spec.replicas, sizeof *c.items), 0};
    int r = 0;
    for (size_t i = 0; i < g->spec.n_placement_groups && r == 0; i++) {
        const char *ranges = g->spec.placement_groups[i].bundles;
        r = take_ranges(
            &c, i, ranges ? ranges : arena_printf(a, "0-%lld", (long long)bundles_count(&named[i]->spec) - 1), err);
    }
    if (r == 0 && c.n < g->spec.replicas)
        r = err_set(err, ERR_INVALID, "spec.placement.groups names %d bundles for %d replicas", c.n, g->spec.replicas);
    *ret = c.items;
    return r;
}

static int32_t count(const char *list)
{
    int32_t n = str_empty(list) ? 0 : 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static void add_processes(const struct workergroup *g, int32_t first, int32_t n, struct buf *to, struct arena *a)
{
    const struct replica_bundle place = {.gpu = first, .gpus = n};
    for (int32_t local = 0; local < g->spec.workers_per_replica; local++) {
        int *own;
        size_t n_own = group_bundles_gpus(g, &place, local, a, &own);
        buf_puts(to, to->len ? ";" : "");
        for (size_t i = 0; i < n_own; i++)
            buf_printf(to, "%s%d", i ? "," : "", own[i]);
        if (!n_own)
            buf_puts(to, "-");
    }
}

int claim_gpus(const struct workergroup *g, const char *const *gpus, struct arena *a, struct claimed_gpus *ret,
               struct err *err)
{
    struct buf list = BUF_INIT(LIST_MAX), processes = BUF_INIT(LIST_MAX);
    int32_t first = 0;
    int r = 0;
    for (int32_t i = 0; i < g->spec.replicas && r == 0; i++) {
        int32_t n = count(gpus[i]);
        if (g->spec.worker.gpus > n)
            r = err_set(err, ERR_INVALID, "spec.worker.gpus is %d, but replica %d has %d nvidia.com/gpu",
                        g->spec.worker.gpus, i, n);
        if (n)
            buf_printf(&list, "%s%s", list.len ? "," : "", gpus[i]);
        add_processes(g, first, n, &processes, a);
        first += n;
    }
    const struct worker_spec *w = &g->spec.worker;
    *ret = (struct claimed_gpus){arena_strdup(a, buf_str(&list)), arena_strdup(a, buf_str(&processes)),
                                 w->gpu_visibility == GPU_VISIBILITY_OWN ||
                                     (w->gpu_visibility == GPU_VISIBILITY_DEFAULT && w->module)};
    buf_done(&list);
    buf_done(&processes);
    return r;
}
