// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/replicas.h"

#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod.h"
#include "operator/runtime/excluded_namespaces.h"

#include <stdlib.h>

struct replicas {
    struct store *pods;
    char *ns, *name;
    char *list; // NULL = not known
    replicas_fn changed;
    replicas_rival_fn rival;
    void *ctx;
};

// The chart selects the replicas by these labels.
static const char *const same[] = {"app.kubernetes.io/name", "app.kubernetes.io/instance",
                                   "app.kubernetes.io/component"};

static bool runs(const struct object *o)
{
    return o && !o->meta.deleted_ms && pod_of(o)->phase == POD_RUNNING;
}

// Returns true for a pod with the labels of our own pod.
static bool is_like(const struct object *o, const struct object *own)
{
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        const char *a = labels_get(&o->meta.labels, same[i]), *b = labels_get(&own->meta.labels, same[i]);
        if (!a || !b || !str_eq(a, b))
            return false;
    }
    return str_eq(o->meta.ns, own->meta.ns);
}

struct replica_names {
    const struct object *own;
    const char **names;
    size_t n;
};

static void visit(void *ctx, const struct object *o)
{
    struct replica_names *found = ctx;
    if (!is_like(o, found->own) || !runs(o))
        return;
    found->names = xrealloc(found->names, found->n + 1, sizeof *found->names);
    found->names[found->n++] = o->meta.name;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp_natural(*(const char *const *)a, *(const char *const *)b);
}

// Returns NULL if our own pod is not known.
static char *list_names(const struct replicas *r)
{
    struct replica_names found = {.own = store_get(r->pods, r->ns, r->name)};
    struct json_writer w = WRITER_INIT;
    if (!found.own)
        return NULL;
    store_each(r->pods, visit, &found);
    if (found.n)
        qsort(found.names, found.n, sizeof *found.names, by_name);
    writer_strs(&w, NULL, found.names, found.n);
    free(found.names);
    return buf_take(&w.buf);
}

static void look(struct replicas *r)
{
    char *old = r->list;
    r->list = list_names(r);
    r->changed(r->ctx, r->list);
    free(old);
}

// Most pods of the cluster are not operators, and do not have this label.
static bool is_rival(const struct object *o, const struct object *own)
{
    const char *its = labels_get(&o->meta.labels, LABEL_WATCHES), *ours = labels_get(&own->meta.labels, LABEL_WATCHES);
    bool here = str_eq(o->meta.ns, own->meta.ns) &&
                str_eq(labels_get(&o->meta.labels, same[1]), labels_get(&own->meta.labels, same[1]));
    return its && ours && !here && (str_eq(its, ours) || str_eq(its, WATCHES_ALL) || str_eq(ours, WATCHES_ALL));
}

static void tell_rival(const struct replicas *r, const struct object *o, const struct object *own)
{
    if (runs(o) && is_rival(o, own))
        r->rival(r->ctx, o->meta.ns, o->meta.name, labels_get(&o->meta.labels, LABEL_WATCHES));
}

static void visit_rival(void *ctx, const struct object *o)
{
    const struct replicas *r = ctx;
    tell_rival(r, o, store_get(r->pods, r->ns, r->name));
}

static bool is_own(const struct replicas *r, const struct object *o)
{
    return str_eq(o->meta.ns, r->ns) && str_eq(o->meta.name, r->name);
}

// A look visits all pods of the cluster, so the pods of workers must not cause one.
static bool matters(const struct replicas *r, const struct object *old, const struct object *now)
{
    const struct object *own = store_get(r->pods, r->ns, r->name);
    return is_own(r, now ? now : old) || (own && ((old && is_like(old, own)) || (now && is_like(now, own))));
}

static void look_for_rivals(struct replicas *r, const struct object *old, const struct object *now)
{
    const struct object *own = now ? store_get(r->pods, r->ns, r->name) : NULL;
    if (own && !old && is_own(r, now))
        store_each(r->pods, visit_rival, r);
    else if (own && !runs(old))
        tell_rival(r, now, own);
}

static void on_pod(void *ctx, const struct object *old, const struct object *now)
{
    struct replicas *r = ctx;
    if (matters(r, old, now))
        look(r);
    look_for_rivals(r, old, now);
}

struct replicas *replicas_new(struct store *pods, const char *ns, const char *name, replicas_fn changed,
                              replicas_rival_fn rival, void *ctx)
{
    struct replicas *r = xcalloc(1, sizeof *r);
    *r = (struct replicas){
        .pods = pods, .ns = xstrdup(ns), .name = xstrdup(name), .changed = changed, .rival = rival, .ctx = ctx};
    store_subscribe(pods, on_pod, r);
    look(r);
    return r;
}

void replicas_free(struct replicas *r)
{
    if (!r)
        return;
    free(r->list);
    free(r->ns);
    free(r->name);
    free(r);
}
