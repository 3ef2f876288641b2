// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/territory.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod.h"

#include <stdlib.h>

struct left { // a namespace that is left to others
    struct territory *of;
    char *ns, *pod;            // `pod` is the first pod
    size_t n;                  // pods of an operator that watches this namespace
    struct loop_timer *linger; // armed while there is no such pod
};

struct territory {
    struct loop *loop;
    struct map left; // key: namespace
    int64_t linger_ms;
    territory_fn changed;
    void *ctx;
};

static bool claims(const struct object *o)
{
    const char *watches = o ? labels_get(&o->meta.labels, LABEL_WATCHES) : NULL;
    const char *component = o ? labels_get(&o->meta.labels, "app.kubernetes.io/component") : NULL;
    return watches && str_eq(watches, o->meta.ns) && component && str_eq(component, "operator") &&
           !o->meta.deleted_ms && pod_of(o)->phase == POD_RUNNING;
}

static void left_free(struct left *l)
{
    loop_timer_free(l->linger);
    free(l->ns);
    free(l->pod);
    free(l);
}

static void on_lingered(void *ctx)
{
    struct left *l = ctx;
    struct territory *t = l->of;
    (void)map_del(&t->left, l->ns);
    t->changed(t->ctx, l->ns, NULL);
    left_free(l);
}

static void claim(struct territory *t, const struct object *o)
{
    struct left *l = map_get(&t->left, o->meta.ns);
    if (l) {
        l->n++;
        loop_timer_disarm(l->linger);
        return;
    }
    l = xcalloc(1, sizeof *l);
    *l = (struct left){.of = t, .ns = xstrdup(o->meta.ns), .pod = xstrdup(o->meta.name), .n = 1};
    l->linger = loop_timer_new(t->loop, on_lingered, l);
    map_set(&t->left, l->ns, l);
    t->changed(t->ctx, l->ns, o->meta.name);
}

static void unclaim(struct territory *t, const struct object *o)
{
    struct left *l = map_get(&t->left, o->meta.ns);
    if (--l->n == 0)
        loop_timer_arm(l->linger, l->of->linger_ms);
}

static void on_pod(void *ctx, const struct object *old, const struct object *now)
{
    struct territory *t = ctx;
    bool before = claims(old), after = claims(now);
    if (after && !before)
        claim(t, now);
    else if (before && !after)
        unclaim(t, old);
}

struct territory *territory_new(struct loop *loop, struct store *pods, int64_t linger_ms, territory_fn changed,
                                void *ctx)
{
    struct territory *t = xcalloc(1, sizeof *t);
    *t = (struct territory){.loop = loop, .linger_ms = linger_ms, .changed = changed, .ctx = ctx};
    store_subscribe(pods, on_pod, t);
    return t;
}

void territory_free(struct territory *t)
{
    void *value;
    if (!t)
        return;
    for (size_t i = 0; map_next(&t->left, &i, NULL, &value);)
        left_free(value);
    map_done(&t->left);
    free(t);
}

void territory_each(const struct territory *t, territory_fn fn, void *ctx)
{
    void *value;
    for (size_t i = 0; t && map_next(&t->left, &i, NULL, &value);) {
        const struct left *l = value;
        fn(ctx, l->ns, l->pod);
    }
}

bool territory_left(const struct territory *t, const char *ns)
{
    return t && map_has(&t->left, ns);
}
