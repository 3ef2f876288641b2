// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/environment.h"

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/agent/install.h"

#include <string.h>

enum { OWN_VARS = 26, EXPANDED_MAX = 1 << 20 };

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list[n])
        n++;
    return n;
}

struct builder {
    struct arena *a;
    struct map at; // name -> its index in `list`, plus 1
    const char **list;
    size_t n;
};

static void put(struct builder *b, const char *name, const char *value)
{
    const char *entry = arena_printf(b->a, "%s=%s", name, value);
    size_t at = (size_t)(uintptr_t)map_get(&b->at, name);
    if (at > 0) {
        b->list[at - 1] = entry;
        return;
    }
    b->list[b->n++] = entry;
    map_set(&b->at, name, (void *)(uintptr_t)b->n);
}

static void put_number(struct builder *b, const char *name, int value)
{
    put(b, name, arena_printf(b->a, "%d", value));
}

static void put_set(struct builder *b, const char *name, const char *value)
{
    if (value)
        put(b, name, value);
}

static void put_group(struct builder *b, const struct environment_group *g)
{
    put(b, "MASTER_ADDR", g->master_addr);
    put_number(b, "MASTER_PORT", g->master_port);
    put_number(b, "WORLD_SIZE", g->world_size);
    put_number(b, "LOCAL_WORLD_SIZE", g->local_world_size);
    put_number(b, "NNODES", g->nnodes);
    put_number(b, "NODE_RANK", g->node_rank);
    put_number(b, "GROUP_RANK", g->node_rank); // torchrun's word for the same
    put(b, "GROUP_NAME", g->name);
    put(b, "PET_MASTER_ADDR", g->master_addr);
    put_number(b, "PET_MASTER_PORT", g->master_port);
    put_number(b, "PET_NNODES", g->nnodes);
    put_number(b, "PET_NODE_RANK", g->node_rank);
    put_number(b, "PET_NPROC_PER_NODE", g->local_world_size);
    put_set(b, "CADRE_GROUP_UID", g->uid);
    put_set(b, "CADRE_NAMESPACE", g->ns);
    put_number(b, "CADRE_INDEX", g->node_rank);
}

static void put_process(struct builder *b, const struct environment_process *p, const struct gpus_view *view)
{
    put_number(b, "RANK", p->rank);
    put_number(b, "LOCAL_RANK", p->local_rank);
    put_number(b, "CADRE_ATTEMPT", p->attempt);
    put_number(b, "CADRE_DEVICE", view->device);
    put_set(b, "CADRE_TICKET", p->ticket);
    put_set(b, "CUDA_VISIBLE_DEVICES", view->visible);
}

static void put_pod(struct builder *b, const char *const *pod)
{
    for (; *pod; pod++) {
        const char *equals = strchr(*pod, '=');
        if (equals) // ignore everything that is not NAME=VALUE
            put(b, arena_strndup(b->a, *pod, (size_t)(equals - *pod)), equals + 1);
    }
}

// Follows Kubernetes exactly: $$ becomes $, even if no name follows. A reference stays as it is if it is not set or not
// closed.
const char *environment_expand(const char *const *env, const char *text, struct arena *a)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(EXPANDED_MAX);
    for (const char *at; (at = strchr(text, '$'));) {
        const char *close = at[1] == '(' ? strchr(at, ')') : NULL, *end = close ? close + 1 : at + 1;
        const char *value = close ? environment_get(env, arena_strndup(a, at + 2, (size_t)(close - at - 2))) : NULL;
        buf_append(&b, text, (size_t)(at - text));
        if (value)
            buf_puts(&b, value);
        else
            buf_append(&b, at, (size_t)(end - at));
        text = at[1] == '$' ? at + 2 : end;
    }
    buf_puts(&b, text);
    const char *ret = arena_strdup(a, buf_str(&b));
    return ret;
}

static void put_vars(struct builder *b, const struct environment_group *g)
{
    for (size_t i = 0; i < g->n_vars; i++) {
        const struct environment_var *v = &g->vars[i];
        put(b, v->name, str_starts(v->name, "CADRE_") ? v->value : environment_expand(b->list, v->value, b->a));
    }
}

static const char *get_var(const struct environment_group *g, const char *const *pod, const char *name)
{
    for (size_t i = g->n_vars; i-- > 0;)
        if (str_eq(g->vars[i].name, name))
            return g->vars[i].value;
    return environment_get(pod, name);
}

// The agent's package comes before the one of the image, because it has the operator's version. With
// CADRE_PACKAGE=image, the image's package is used.
static void put_brought(struct builder *b, const struct environment_group *g)
{
    const char *path = environment_get(b->list, "PYTHONPATH"), *whose = environment_get(b->list, "CADRE_PACKAGE");
    if (!g->brought || !environment_get(b->list, "CADRE_PYTHON") || str_eq(whose, "image"))
        return;
    put(b, "PYTHONPATH",
        arena_printf(b->a, "%s/" INSTALL_PACKAGE "%s%s", g->brought, str_empty(path) ? "" : ":", path ? path : ""));
    put(b, "CADRE_CLIENT_LIBRARY", arena_printf(b->a, "%s/" INSTALL_LIBRARY, g->brought));
}

int environment_gpus(const char *const *pod, const struct environment_group *g, const struct environment_process *p,
                     struct arena *a, struct gpus_view *ret, struct err *err)
{
    struct gpus gpus = g->gpus;
    const struct gpus_worker worker = {p->local_rank, g->local_world_size, p->gpus, p->n_gpus};
    gpus.cuda_visible = get_var(g, pod, "CUDA_VISIBLE_DEVICES");
    gpus.nvidia_visible = get_var(g, pod, "NVIDIA_VISIBLE_DEVICES");
    return gpus_view(&gpus, &worker, a, ret, err);
}

int environment_build(const char *const *pod, const struct environment_group *g, const struct environment_process *p,
                      struct arena *a, const char *const **ret, struct err *err)
{
    struct gpus_view view;
    struct builder b = {.a = a, .at = MAP_INIT};
    b.list = arena_array(a, count(pod) + g->n_vars + OWN_VARS + 1, sizeof *b.list);
    put_pod(&b, pod);
    int r = environment_gpus(b.list, g, p, a, &view, err);
    if (r == 0) {
        put_group(&b, g);
        put_process(&b, p, &view);
        put_vars(&b, g);
        put_group(&b, g); // again: the user's variables must not change the identity
        put_process(&b, p, &view);
        put_brought(&b, g);
        *ret = b.list;
    }
    map_done(&b.at);
    return r;
}

static bool is_for_template(const char *name)
{
    return !str_starts(name, "CADRE_") || str_eq(name, "CADRE_PYTHON") || str_eq(name, "CADRE_PRELOAD") ||
           str_eq(name, "CADRE_PACKAGE");
}

const char *const *environment_template(const char *const *pod, const struct environment_group *g, struct arena *a)
{
    struct builder b = {.a = a, .at = MAP_INIT};
    b.list = arena_array(a, count(pod) + g->n_vars + OWN_VARS + 1, sizeof *b.list);
    put_pod(&b, pod);
    for (size_t i = 0; i < g->n_vars; i++)
        if (is_for_template(g->vars[i].name))
            put(&b, g->vars[i].name, environment_expand(b.list, g->vars[i].value, a));
    put_set(&b, "CADRE_GROUP_UID", g->uid);
    put(&b, "CADRE_TEMPLATE", "1");
    put_brought(&b, g);
    map_done(&b.at);
    return b.list;
}

const char *const *environment_expand_all(const char *const *env, const char *const *texts, struct arena *a)
{
    size_t n = count(texts);
    const char **all = arena_array(a, n + 1, sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = environment_expand(env, texts[i], a);
    return all;
}

const char *const *environment_copy(const char *const *list, struct arena *a)
{
    size_t n = count(list);
    const char **ret = arena_array(a, n + 1, sizeof *ret);
    for (size_t i = 0; i < n; i++)
        ret[i] = arena_strdup(a, list[i]);
    return ret;
}

static const char *name_of(const char *entry, struct arena *a)
{
    return arena_strndup(a, entry, strcspn(entry, "="));
}

const char *const *environment_changes(const char *const *from, const char *const *to, struct arena *a)
{
    const char **ret = arena_array(a, count(from) + count(to) + 1, sizeof *ret);
    size_t n = 0;
    for (size_t i = 0; to[i]; i++) {
        const char *name = name_of(to[i], a), *before = environment_get(from, name);
        if (!before || !str_eq(before, environment_get(to, name)))
            ret[n++] = to[i];
    }
    for (size_t i = 0; from[i]; i++) {
        const char *name = name_of(from[i], a);
        if (!environment_get(to, name))
            ret[n++] = name;
    }
    return ret;
}

const char *environment_get(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}
