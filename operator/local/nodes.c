// SPDX-License-Identifier: Apache-2.0
#include "operator/local/nodes.h"

#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/podtemplate.h"
#include "operator/placement/planner.h"

#include <stdlib.h>
#include <string.h>

#define NS "local"

enum { GPU_LIST_MAX = 64 * 1024 };

struct tenant {
    struct list link;
    char *uid;
    int32_t replicas;
};

struct nodes {
    struct cluster *cluster;
    int n, gpus_each;
    const struct tenant **gpus; // who has each, n * gpus_each of them; NULL = nobody
    struct list tenants;
};

static void add_node(struct nodes *n, int i)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const struct object *o;
    const char *json =
        arena_printf(&a,
                     "{\"metadata\":{\"name\":\"local-%d\"},\"status\":{\"allocatable\":{\"pods\":"
                     "\"100k\",\"nvidia.com/gpu\":\"%d\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                     i, n->gpus_each);
    if (object_decode(KIND_NODE, json, strlen(json), &o, &err) == 0) {
        cluster_set_node(n->cluster, node_of(o));
        object_unref(o);
    }
    arena_done(&a);
}

struct nodes *nodes_new(int count, int gpus_each)
{
    struct nodes *n = xcalloc(1, sizeof *n);
    *n = (struct nodes){.cluster = cluster_new(), .n = count, .gpus_each = gpus_each};
    n->gpus = xcalloc((size_t)count * (size_t)gpus_each + 1, sizeof *n->gpus);
    list_init(&n->tenants);
    for (int i = 0; i < count; i++)
        add_node(n, i);
    return n;
}

static void tenant_free(struct tenant *t)
{
    list_remove(&t->link);
    free(t->uid);
    free(t);
}

void nodes_free(struct nodes *n)
{
    if (!n)
        return;
    LIST_FOREACH(l, &n->tenants)
        tenant_free(CONTAINER_OF(l, struct tenant, link));
    cluster_free(n->cluster);
    free(n->gpus);
    free(n);
}

// Fields about pods have no effect on this machine, but for the GPUs that they ask for.
static int constraints_of(const struct workergroup *g, struct arena *a, struct pod_constraints *ret, struct err *err)
{
    static const char *const nothing[] = {NULL};
    struct template_facts facts = {0};
    const char *json = g->spec.template_json;
    int r = json ? template_inspect(json, nothing, a, &facts, err) : 0;
    *ret = (struct pod_constraints){.requests.items = arena_array(a, 1, sizeof(struct resource))};
    if (facts.gpus > 0)
        ret->requests.items[ret->requests.n++] =
            (struct resource){RESOURCE_GPU, MIN(facts.gpus, (int64_t)NODES_GPUS_MAX + 1) * 1000};
    return r;
}

static const char *pod_name(const char *uid, int32_t replica, struct arena *a)
{
    return arena_printf(a, "%s-%d", uid, (int)replica);
}

// The lowest free ones of its node, for a replica. The planner has counted them.
static void take_gpus(struct nodes *n, const struct tenant *t, const char *node, int64_t wanted, struct buf *list)
{
    int64_t i = 0;
    str_to_i64(node + strlen("local-"), &i);
    for (int64_t at = i * n->gpus_each; at < (i + 1) * n->gpus_each && wanted > 0; at++)
        if (!n->gpus[at]) {
            n->gpus[at] = t;
            wanted--;
            buf_printf(list, "%s%lld", list->len ? "," : "", (long long)at);
        }
}

static void sit_down(struct nodes *n, const char *uid, const struct workergroup *g, const struct pod_constraints *c,
                     const char **nodes, struct arena *a, struct nodes_assignment *ret)
{
    struct buf list = BUF_INIT(GPU_LIST_MAX);
    struct tenant *t = xcalloc(1, sizeof *t);
    *t = (struct tenant){.uid = xstrdup(uid), .replicas = g->spec.replicas};
    list_append(&n->tenants, &t->link);
    for (int32_t i = 0; i < t->replicas; i++) {
        cluster_assume(n->cluster, NS, pod_name(uid, i, a), nodes[i], &c->requests);
        take_gpus(n, t, nodes[i], resources_get(&c->requests, RESOURCE_GPU) / 1000, &list);
    }
    *ret = (struct nodes_assignment){nodes, arena_strdup(a, buf_str(&list))};
    buf_done(&list);
}

int nodes_assign(struct nodes *n, const char *uid, const struct workergroup *g, struct arena *a,
                 struct nodes_assignment *ret, struct err *err)
{
    struct pod_constraints constraints;
    struct placement placement;
    int r = constraints_of(g, a, &constraints, err);
    if (r < 0)
        return r;
    struct bundle *bundles = arena_array(a, (size_t)g->spec.replicas, sizeof *bundles);
    for (int32_t i = 0; i < g->spec.replicas; i++)
        bundles[i].constraints = &constraints;
    const struct gang gang = {
        .strategy = g->spec.strategy, .bundles = bundles, .n_bundles = (size_t)g->spec.replicas, .uid = uid};
    planner_place(n->cluster, &gang, a, &placement);
    if (placement.verdict == VERDICT_PLACED) {
        sit_down(n, uid, g, &constraints, placement.nodes, a, ret);
        return 0;
    }
    if (placement.verdict == VERDICT_INSUFFICIENT)
        return err_set(err, ERR_UNAVAILABLE, "%s; it starts when other groups of this run end", placement.message);
    return err_set(err, ERR_LIMIT, "%s; --nodes and --gpus say what this run has", placement.message);
}

void nodes_leave(struct nodes *n, const char *uid)
{
    struct arena a = ARENA_INIT;
    LIST_FOREACH(l, &n->tenants) {
        struct tenant *t = CONTAINER_OF(l, struct tenant, link);
        if (!str_eq(t->uid, uid))
            continue;
        for (int i = 0; i < n->n * n->gpus_each; i++)
            if (n->gpus[i] == t)
                n->gpus[i] = NULL;
        for (int32_t i = 0; i < t->replicas; i++)
            cluster_unassume(n->cluster, NS, pod_name(uid, i, &a));
        tenant_free(t);
    }
    arena_done(&a);
}
