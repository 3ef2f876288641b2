// SPDX-License-Identifier: Apache-2.0
#include "operator/api/bundle.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "operator/api/quantity.h"
#include "operator/api/resource.h"

#include <stdlib.h>
#include <string.h>

static int cmp_amount(const void *a, const void *b)
{
    return strcmp(((const struct amount *)a)->name, ((const struct amount *)b)->name);
}

static int quantity_of(const struct json *v, struct arena *a, int64_t *ret, struct err *err)
{
    const char *text = v->type == JSON_NUMBER ? arena_strndup(a, v->text, v->len) : json_str(v, a);
    if (!text)
        return err_set(err, ERR_INVALID, "expected a quantity, got %s", json_type_name(v->type));
    return quantity_parse(text, ret, err);
}

int amounts_decode(const char *json, struct arena *a, struct amounts *ret, struct err *err)
{
    struct json *root;
    *ret = (struct amounts){0};
    int r = json_parse(json, strlen(json), NULL, a, &root, err);
    if (r < 0)
        return r;
    ret->items = arena_array(a, json_count(root), sizeof *ret->items);
    JSON_FOREACH(m, root) {
        struct amount *x = &ret->items[ret->n++];
        x->name = arena_strndup(a, m->key, m->key_len);
        if (quantity_of(m, a, &x->milli, err) < 0)
            return err_wrap(err, "resource %s", x->name);
    }
    if (ret->n)
        qsort(ret->items, ret->n, sizeof *ret->items, cmp_amount);
    return 0;
}

static const struct amount *find(const struct amounts *in, const char *name)
{
    struct amount key = {.name = name};
    return in->n ? bsearch(&key, in->items, in->n, sizeof key, cmp_amount) : NULL;
}

int64_t amounts_get(const struct amounts *from, const char *name)
{
    const struct amount *x = find(from, name);
    return x ? x->milli : 0;
}

void amounts_add(struct amounts *to, const struct amounts *from, struct arena *a)
{
    struct amount *items = arena_array(a, to->n + from->n, sizeof *items);
    size_t n = 0, i = 0, k = 0;
    while (i < to->n || k < from->n) {
        int c = i == to->n ? 1 : k == from->n ? -1 : strcmp(to->items[i].name, from->items[k].name);
        struct amount x = c > 0 ? from->items[k] : to->items[i];
        if (c == 0)
            x.milli = amount_add(x.milli, from->items[k].milli);
        i += c <= 0;
        k += c >= 0;
        items[n++] = x;
    }
    *to = (struct amounts){items, n};
}

struct fill {
    struct json_writer w;
    const struct bundle_fill *f;
    struct arena *arena;
    struct err *err;
};

static int get_object(struct fill *o, const struct json *in, const char *name, const struct json **ret)
{
    *ret = json_get(in, name);
    if (*ret && (*ret)->type != JSON_OBJECT)
        return err_set(o->err, ERR_INVALID, "spec.template: %s: expected object, got %s", name,
                       json_type_name((*ret)->type));
    return 0;
}

static void write_template(struct fill *o, const struct json *root, const struct json *spec)
{
    static const char token[] = "automountServiceAccountToken";
    bool open = !json_get(spec, token); // missing or null
    writer_object(&o->w, NULL);
    JSON_FOREACH(m, root)
        if (!json_key_is(m, "spec"))
            writer_copy(&o->w, m);
    writer_object(&o->w, "spec");
    JSON_FOREACH(m, spec)
        if (!json_key_is(m, "containers") && !(open && json_key_is(m, token)))
            writer_copy(&o->w, m);
    if (open) // no program in our image calls the API server
        writer_bool(&o->w, token, false);
    // Meets the Pod Security Standard "restricted".
    writer_print(&o->w, "containers",
                 "[{'name':'worker','securityContext':{'runAsNonRoot':true,'runAsUser':65532,"
                 "'allowPrivilegeEscalation':false,'capabilities':{'drop':['ALL']},"
                 "'seccompProfile':{'type':'RuntimeDefault'}}}]");
    writer_object_end(&o->w);
    writer_object_end(&o->w);
}

int bundle_template(const char *json, struct arena *a, const char **ret_json, struct err *err)
{
    struct arena scratch = ARENA_INIT;
    struct fill o = {.arena = &scratch, .err = err, .w = WRITER_INIT};
    struct json *root = NULL;
    const struct json *spec = NULL;
    int r = json ? json_parse(json, strlen(json), NULL, &scratch, &root, err) : 0;
    if (r < 0)
        r = err_wrap(err, "spec.template");
    else if (root)
        r = get_object(&o, root, "spec", &spec);
    const struct json *containers = json_get(spec, "containers");
    bool whole = containers && (containers->type != JSON_LIST || containers->child);
    if (r == 0 && (whole || (root && root->type != JSON_OBJECT))) {
        *ret_json = json;
    } else if (r == 0) {
        write_template(&o, root, spec);
        *ret_json = writer_finish(&o.w, a);
    }
    arena_done(&scratch);
    return r;
}

// A template may let the pod use idle CPUs beyond those that its bundles reserve.
static int64_t limit_of(struct fill *o, const struct json *limits, const struct amount *x)
{
    int64_t milli;
    const struct json *cpu = json_get(limits, "cpu");
    struct err ignored = ERR_INIT;
    if (o->f->replaces || !cpu || resource_id(x->name) != RESOURCE_CPU ||
        quantity_of(cpu, o->arena, &milli, &ignored) < 0)
        return x->milli;
    return milli > x->milli ? milli : x->milli;
}

static int write_resources_of(struct fill *o, const struct json *resources, const char *kind)
{
    const struct json *theirs;
    const struct bundle_fill *f = o->f;
    int r = get_object(o, resources, kind, &theirs);
    if (r < 0)
        return r;
    writer_object(&o->w, kind);
    JSON_FOREACH(m, f->replaces ? theirs : NULL) {
        const char *name = arena_strndup(o->arena, m->key, m->key_len);
        if (!find(f->replaces, name) && !find(f->resources, name))
            writer_copy(&o->w, m);
    }
    for (size_t i = 0; i < f->resources->n; i++) {
        const struct amount *x = &f->resources->items[i];
        int64_t milli = strcmp(kind, "limits") == 0 ? limit_of(o, theirs, x) : x->milli;
        writer_str(&o->w, x->name, quantity_format(resource_id(x->name), milli, o->arena));
    }
    writer_object_end(&o->w);
    return 0;
}

static int write_first(struct fill *o, const struct json *container)
{
    const struct json *resources, *image = json_get(container, "image");
    int r = get_object(o, container, "resources", &resources);
    if (r < 0)
        return r;
    writer_object(&o->w, NULL);
    JSON_FOREACH(m, container)
        if (!json_key_is(m, "resources") && (image || !json_key_is(m, "image")))
            writer_copy(&o->w, m);
    if (!image)
        writer_str_set(&o->w, "image", o->f->image);
    if (!image && !json_get(container, "imagePullPolicy"))
        writer_str_set(&o->w, "imagePullPolicy", o->f->pull_policy);
    writer_object(&o->w, "resources");
    JSON_FOREACH(m, resources)
        if (!json_key_is(m, "requests") && !json_key_is(m, "limits"))
            writer_copy(&o->w, m);
    r = write_resources_of(o, resources, "requests");
    if (r == 0)
        r = write_resources_of(o, resources, "limits");
    writer_object_end(&o->w);
    writer_object_end(&o->w);
    return r;
}

static int write_containers(struct fill *o, const struct json *list)
{
    if (!list || list->type != JSON_LIST || !list->child || list->child->type != JSON_OBJECT)
        return err_set(o->err, ERR_INVALID, "spec.template.spec.containers: at least one container is needed");
    writer_list(&o->w, "containers");
    int r = write_first(o, list->child);
    for (const struct json *item = list->child->next; item; item = item->next)
        writer_copy(&o->w, item);
    writer_list_end(&o->w);
    return r;
}

static int write_selector(struct fill *o, const struct json *spec)
{
    const struct json *theirs;
    const struct labels *ours = o->f->node_selector;
    int r = get_object(o, spec, "nodeSelector", &theirs);
    if (r < 0 || (!theirs && !ours->n))
        return r;
    writer_object(&o->w, "nodeSelector");
    JSON_FOREACH(m, theirs)
        if (!labels_get(ours, arena_strndup(o->arena, m->key, m->key_len)))
            writer_copy(&o->w, m);
    for (size_t i = 0; i < ours->n; i++)
        writer_str(&o->w, ours->items[i].key, ours->items[i].value);
    writer_object_end(&o->w);
    return 0;
}

static int write_spec(struct fill *o, const struct json *spec)
{
    writer_object(&o->w, "spec");
    JSON_FOREACH(m, spec)
        if (!json_key_is(m, "containers") && !json_key_is(m, "nodeSelector"))
            writer_copy(&o->w, m);
    int r = write_selector(o, spec);
    if (r == 0)
        r = write_containers(o, json_get(spec, "containers"));
    writer_object_end(&o->w);
    return r;
}

int bundle_fill(const char *json, const struct bundle_fill *f, struct arena *a, const char **ret_json, struct err *err)
{
    struct arena scratch = ARENA_INIT;
    struct fill o = {.f = f, .arena = &scratch, .err = err, .w = WRITER_INIT};
    struct json *root;
    const struct json *spec;
    int r = json_parse(json, strlen(json), NULL, &scratch, &root, err);
    if (r == 0)
        r = get_object(&o, root, "spec", &spec);
    if (r == 0) {
        writer_object(&o.w, NULL);
        JSON_FOREACH(m, root)
            if (!json_key_is(m, "spec"))
                writer_copy(&o.w, m);
        r = write_spec(&o, spec);
        writer_object_end(&o.w);
    }
    if (r == 0)
        *ret_json = writer_finish(&o.w, a);
    else
        writer_done(&o.w);
    arena_done(&scratch);
    return r;
}
