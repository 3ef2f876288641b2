// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/excluded_namespaces.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod.h"

#include <stdlib.h>

struct excluded { // a namespace
    struct excluded_namespaces *of;
    char *ns, *pod;            // `pod` is the first pod
    size_t n;                  // pods of an operator that watches this namespace
    struct loop_timer *linger; // armed while there is no such pod
};

struct excluded_namespaces {
    struct loop *loop;
    struct map by_ns; // struct excluded
    int64_t linger_ms;
    excluded_namespaces_fn changed;
    void *ctx;
};

static bool claims(const struct object *o)
{
    const char *watches = o ? labels_get(&o->meta.labels, LABEL_WATCHES) : NULL;
    const char *component = o ? labels_get(&o->meta.labels, "app.kubernetes.io/component") : NULL;
    return watches && str_eq(watches, o->meta.ns) && component && str_eq(component, "operator") &&
           !o->meta.deleted_ms && pod_of(o)->phase == POD_RUNNING;
}

static void excluded_free(struct excluded *e)
{
    loop_timer_free(e->linger);
    free(e->ns);
    free(e->pod);
    free(e);
}

static void on_lingered(void *ctx)
{
    struct excluded *e = ctx;
    struct excluded_namespaces *t = e->of;
    (void)map_del(&t->by_ns, e->ns);
    t->changed(t->ctx, e->ns, NULL);
    excluded_free(e);
}

static void claim(struct excluded_namespaces *t, const struct object *o)
{
    struct excluded *e = map_get(&t->by_ns, o->meta.ns);
    if (e) {
        e->n++;
        loop_timer_disarm(e->linger);
        return;
    }
    e = xcalloc(1, sizeof *e);
    *e = (struct excluded){.of = t, .ns = xstrdup(o->meta.ns), .pod = xstrdup(o->meta.name), .n = 1};
    e->linger = loop_timer_new(t->loop, on_lingered, e);
    map_set(&t->by_ns, e->ns, e);
    t->changed(t->ctx, e->ns, o->meta.name);
}

static void unclaim(struct excluded_namespaces *t, const struct object *o)
{
    struct excluded *e = map_get(&t->by_ns, o->meta.ns);
    if (--e->n == 0)
        loop_timer_arm(e->linger, e->of->linger_ms);
}

static void on_pod(void *ctx, const struct object *old, const struct object *now)
{
    struct excluded_namespaces *t = ctx;
    bool before = claims(old), after = claims(now);
    if (after && !before)
        claim(t, now);
    else if (before && !after)
        unclaim(t, old);
}

struct excluded_namespaces *excluded_namespaces_new(struct loop *loop, struct store *pods, int64_t linger_ms,
                                                    excluded_namespaces_fn changed, void *ctx)
{
    struct excluded_namespaces *t = xcalloc(1, sizeof *t);
    *t = (struct excluded_namespaces){.loop = loop, .linger_ms = linger_ms, .changed = changed, .ctx = ctx};
    store_subscribe(pods, on_pod, t);
    return t;
}

void excluded_namespaces_free(struct excluded_namespaces *t)
{
    void *value;
    if (!t)
        return;
    for (size_t i = 0; map_next(&t->by_ns, &i, NULL, &value);)
        excluded_free(value);
    map_done(&t->by_ns);
    free(t);
}

void excluded_namespaces_each(const struct excluded_namespaces *t, excluded_namespaces_fn fn, void *ctx)
{
    void *value;
    for (size_t i = 0; t && map_next(&t->by_ns, &i, NULL, &value);) {
        const struct excluded *e = value;
        fn(ctx, e->ns, e->pod);
    }
}

bool excluded_namespaces_has(const struct excluded_namespaces *t, const char *ns)
{
    return t && map_has(&t->by_ns, ns);
}
