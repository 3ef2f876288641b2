// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/gpus.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <string.h>

// CUDA's names of the GPUs of a group, or of the pod.
struct gpu_names {
    const char *names[GPUS_MAX];
    int n;
    bool whole; // these are all GPUs of the pod
};

static int split(const char *list, struct arena *a, const char *names[GPUS_MAX])
{
    int n = 0;
    for (const char *p = list; *p && n < GPUS_MAX;) {
        size_t len = strcspn(p, ",");
        if (len > 0)
            names[n++] = arena_strndup(a, p, len);
        p += len + (p[len] == ',');
    }
    return n;
}

static int number(int n, struct arena *a, const char *names[GPUS_MAX])
{
    n = MIN(n, GPUS_MAX);
    for (int i = 0; i < n; i++)
        names[i] = arena_printf(a, "%d", i);
    return MAX(n, 0);
}

// Programs expect numbers in CUDA_VISIBLE_DEVICES. Parts of a GPU (MIG) have no numbers: CUDA takes only their names.
static int pod_names(const struct gpus *g, struct arena *a, const char *names[GPUS_MAX])
{
    static const char *const no_list[] = {"all", "none", "void"};
    if (g->cuda_visible)
        return split(g->cuda_visible, a, names);
    bool list = !str_empty(g->nvidia_visible) && g->nvidia_visible[0] != '/';
    for (size_t i = 0; i < ARRAY_LEN(no_list); i++)
        list = list && !str_eq(g->nvidia_visible, no_list[i]);
    if (!list)
        return number(g->count, a, names);
    int n = split(g->nvidia_visible, a, names);
    return n > 0 && str_starts(names[0], "MIG-") ? n : number(n, a, names);
}

static int names_init(struct gpu_names *p, const struct gpus *g, const int *indices, size_t n_indices, struct arena *a,
                      struct err *err)
{
    const char *names[GPUS_MAX] = {NULL};
    int n = pod_names(g, a, names);
    p->whole = !indices;
    p->n = p->whole ? n : (int)MIN(n_indices, (size_t)GPUS_MAX);
    for (int i = 0; i < p->n; i++) {
        int from = p->whole ? i : indices[i];
        if (from < 0 || from >= n)
            return err_set(err, ERR_INVALID, "there is no GPU %d here: there are %d GPUs", from, n);
        p->names[i] = names[from];
    }
    return 0;
}

static const char *join(const struct gpu_names *p, int first, int n, struct arena *a)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(GPUS_MAX * 64);
    for (int i = 0; i < n; i++)
        buf_printf(&b, "%s%s", i ? "," : "", p->names[(first + i) % p->n]);
    const char *text = arena_strdup(a, buf_str(&b));
    return text;
}

static int position(const struct gpu_names *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (str_eq(p->names[i], name))
            return i;
    return -1;
}

// The operator said which GPUs the worker gets.
static int own_view(const struct gpus *g, const struct gpu_names *pool, const struct gpus_worker *w, struct arena *a,
                    struct gpus_view *ret, struct err *err)
{
    struct gpu_names own = {.n = 0};
    int r = names_init(&own, g, w->own, w->n_own, a, err);
    if (r < 0)
        return r;
    ret->own = join(&own, 0, own.n, a);
    if (g->visibility == GPUS_OWN || own.n == 0) {
        ret->visible = ret->own;
        ret->device = own.n ? 0 : -1;
        return 0;
    }
    ret->device = position(pool, own.names[0]);
    ret->visible = pool->whole ? NULL : join(pool, 0, pool->n, a);
    if (ret->device < 0)
        return err_set(err, ERR_INVALID, "a worker got GPU %d, which does not belong to its group", w->own[0]);
    return 0;
}

int gpus_view(const struct gpus *g, const struct gpus_worker *w, struct arena *a, struct gpus_view *ret,
              struct err *err)
{
    struct gpu_names pool = {.n = 0};
    *ret = (struct gpus_view){.device = -1, .own = ""};
    if (g->per_worker == 0) {
        ret->visible = "";
        return 0;
    }
    int r = names_init(&pool, g, g->indices, g->n_indices, a, err);
    if (r < 0)
        return r;
    if (w->own)
        return own_view(g, &pool, w, a, ret, err);
    if (g->per_worker > pool.n)
        return err_set(err, ERR_INVALID,
                       "each process should get %d GPUs (spec.worker.gpus, or --gpus), but there are %d here",
                       g->per_worker, pool.n);
    if (pool.n == 0) { // nothing to share; there may be GPUs of an unknown kind
        ret->visible = g->indices ? "" : NULL;
        return 0;
    }
    // If there are more workers than GPUs, they share GPUs. If the division leaves GPUs over, no worker gets them.
    bool share = g->per_worker == GPUS_SHARE;
    int n = share ? MAX(pool.n / w->local_world_size, 1) : g->per_worker;
    int first = share && pool.n < w->local_world_size ? (int)((long)w->local_rank * pool.n / w->local_world_size)
                                                      : (int)((long)w->local_rank * n % pool.n);
    ret->own = join(&pool, first, n, a);
    if (g->visibility == GPUS_OWN) {
        ret->visible = ret->own;
        ret->device = 0;
    } else {
        ret->visible = pool.whole ? NULL : join(&pool, 0, pool.n, a);
        ret->device = first;
    }
    return 0;
}
