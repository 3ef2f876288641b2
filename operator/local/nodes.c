// SPDX-License-Identifier: Apache-2.0
#include "operator/local/nodes.h"

#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/draft.h"
#include "operator/api/object_decode.h"
#include "operator/api/pod_constraints.h"
#include "operator/placement/planner.h"

#include <stdlib.h>
#include <string.h>

#define NS "local"

enum { GPU_LIST_MAX = 64 * 1024 };

struct local_gang {
    struct list link;
    char *uid;
    int32_t n; // number of its members
};

struct nodes {
    struct cluster *cluster;
    int n, gpus_each, cpus_each;
    const struct local_gang **gpus; // the gang that has each GPU, n * gpus_each of them; NULL = free
    struct list gangs;              // struct local_gang
};

static void add_node(struct nodes *n, int i)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const struct object *o;
    const char *json = arena_printf(
        &a,
        "{\"metadata\":{\"name\":\"local-%d\"},\"status\":{\"allocatable\":{\"pods\":\"100k\",\"cpu\":\"%d\","
        "\"nvidia.com/gpu\":\"%d\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
        i, n->cpus_each, n->gpus_each);
    if (object_decode(KIND_NODE, json, strlen(json), &o, &err) == 0) {
        cluster_set_node(n->cluster, node_of(o));
        object_unref(o);
    }
    arena_done(&a);
}

struct nodes *nodes_new(int count, int gpus_each, int cpus_each)
{
    struct nodes *n = xcalloc(1, sizeof *n);
    *n = (struct nodes){.cluster = cluster_new(), .n = count, .gpus_each = gpus_each, .cpus_each = cpus_each};
    n->gpus = xcalloc((size_t)count * (size_t)gpus_each + 1, sizeof *n->gpus);
    list_init(&n->gangs);
    for (int i = 0; i < count; i++)
        add_node(n, i);
    return n;
}

static void local_gang_free(struct local_gang *t)
{
    list_remove(&t->link);
    free(t->uid);
    free(t);
}

void nodes_free(struct nodes *n)
{
    if (!n)
        return;
    LIST_FOREACH(l, &n->gangs)
        local_gang_free(CONTAINER_OF(l, struct local_gang, link));
    cluster_free(n->cluster);
    free(n->gpus);
    free(n);
}

const char *nodes_capacity(const struct nodes *n, struct arena *a)
{
    struct resource items[2];
    struct resources all = {.items = items};
    if (n->cpus_each)
        items[all.n++] = (struct resource){RESOURCE_CPU, (int64_t)n->n * n->cpus_each * 1000};
    if (n->gpus_each)
        items[all.n++] = (struct resource){RESOURCE_GPU, (int64_t)n->n * n->gpus_each * 1000};
    return capacity_write((size_t)n->n, &all, a);
}

static const char *pod_name(const char *uid, int32_t i, struct arena *a)
{
    return arena_printf(a, "%s-%d", uid, (int)i);
}

// Takes the free GPUs of the node with the lowest numbers. The planner has counted them.
static const char *take_gpus(struct nodes *n, const struct local_gang *t, const char *node, int64_t wanted,
                             struct arena *a)
{
    struct buf list = BUF_INIT(GPU_LIST_MAX);
    int64_t i = 0;
    str_to_i64(node + strlen("local-"), &i);
    for (int64_t at = i * n->gpus_each; at < (i + 1) * n->gpus_each && wanted > 0; at++)
        if (!n->gpus[at]) {
            n->gpus[at] = t;
            wanted--;
            buf_printf(&list, "%s%lld", list.len ? "," : "", (long long)at);
        }
    const char *text = arena_strdup(a, buf_str(&list));
    buf_done(&list);
    return text;
}

static void take_places(struct nodes *n, const struct nodes_gang *gang, const char **nodes, struct arena *a,
                        struct nodes_assignment *ret)
{
    struct local_gang *t = xcalloc(1, sizeof *t);
    const char **gpus = arena_array(a, (size_t)gang->n, sizeof *gpus);
    *t = (struct local_gang){.uid = xstrdup(gang->uid), .n = gang->n};
    list_append(&n->gangs, &t->link);
    for (int32_t i = 0; i < t->n; i++) {
        cluster_assume(n->cluster, NS, pod_name(gang->uid, i, a), nodes[i], gang->needs[i]);
        gpus[i] = take_gpus(n, t, nodes[i], resources_get(gang->needs[i], RESOURCE_GPU) / 1000, a);
    }
    *ret = (struct nodes_assignment){nodes, gpus};
}

static struct bundle *bundles_of(const struct nodes_gang *gang, struct arena *a)
{
    struct bundle *bundles = arena_array(a, (size_t)gang->n, sizeof *bundles);
    struct pod_constraints *shape = NULL;
    for (int32_t i = 0; i < gang->n; i++) {
        if (i == 0 || gang->needs[i] != gang->needs[i - 1]) {
            shape = arena_new(a, struct pod_constraints);
            shape->requests = *gang->needs[i];
        }
        bundles[i].constraints = shape;
    }
    return bundles;
}

int nodes_assign(struct nodes *n, const struct nodes_gang *gang, struct arena *a, struct nodes_assignment *ret,
                 struct err *err)
{
    struct placement placement;
    const struct gang plan = {.strategy = gang->strategy,
                              .bundles = bundles_of(gang, a),
                              .n_bundles = (size_t)gang->n,
                              .uid = gang->uid,
                              .ns = NS};
    planner_place(n->cluster, &plan, a, &placement);
    if (placement.verdict == VERDICT_PLACED) {
        take_places(n, gang, placement.nodes, a, ret);
        return 0;
    }
    if (placement.verdict == VERDICT_INSUFFICIENT)
        return err_set(err, ERR_UNAVAILABLE, "%s; it starts when others of this run end", placement.message);
    return err_set(err, ERR_LIMIT, "%s; set --nodes, --gpus and --cpus to give this run more", placement.message);
}

void nodes_leave(struct nodes *n, const char *uid)
{
    struct arena a = ARENA_INIT;
    LIST_FOREACH(l, &n->gangs) {
        struct local_gang *t = CONTAINER_OF(l, struct local_gang, link);
        if (!str_eq(t->uid, uid))
            continue;
        for (int i = 0; i < n->n * n->gpus_each; i++)
            if (n->gpus[i] == t)
                n->gpus[i] = NULL;
        for (int32_t i = 0; i < t->n; i++)
            cluster_unassume(n->cluster, NS, pod_name(uid, i, &a));
        local_gang_free(t);
    }
    arena_done(&a);
}
