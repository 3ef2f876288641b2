// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod_requests.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/condition.h"
#include "operator/api/json_table.h"

#include <stdlib.h>

struct container_view {
    const char *name, *restart_policy;
    struct resources requests;
};

struct in_effect {
    const char *name;
    bool reported;
    struct resources actual, allocated;
};

struct pod_view {
    struct container_view *containers, *init;
    size_t n_containers, n_init;
    struct resources overhead, pod_requests;
    struct in_effect *statuses, *init_statuses;
    size_t n_statuses, n_init_statuses;
    struct in_effect pod; // the resources of the pod itself
    struct condition *conditions;
    size_t n_conditions;
};

#define VIEW(member) offsetof(struct pod_view, member)
#define CONTAINER(member) offsetof(struct container_view, member)
#define EFFECT(member) offsetof(struct in_effect, member)

// clang-format off
static const struct json_table resources_table = JSON_TABLE(struct resources,
    {"requests", J_QUANTITIES, 0});
static const struct json_table container_table = JSON_TABLE(struct container_view,
    {"name", J_STRING, CONTAINER(name)},
    {"resources", J_OBJECT, CONTAINER(requests), .table = &resources_table},
    {"restartPolicy", J_STRING, CONTAINER(restart_policy)});
static const struct json_table in_effect_table = JSON_TABLE(struct in_effect,
    {"name", J_STRING, EFFECT(name)},
    {"resources", J_OBJECT, EFFECT(actual), .offset_is = EFFECT(reported), .table = &resources_table},
    {"allocatedResources", J_QUANTITIES, EFFECT(allocated)});
static const struct json_table spec_table = JSON_TABLE(struct pod_view,
    {"containers", J_LIST, VIEW(containers), .offset_n = VIEW(n_containers), .table = &container_table},
    {"initContainers", J_LIST, VIEW(init), .offset_n = VIEW(n_init), .table = &container_table},
    {"overhead", J_QUANTITIES, VIEW(overhead)},
    {"resources", J_OBJECT, VIEW(pod_requests), .table = &resources_table});
static const struct json_table status_table = JSON_TABLE(struct pod_view,
    {"containerStatuses", J_LIST, VIEW(statuses), .offset_n = VIEW(n_statuses), .table = &in_effect_table},
    {"initContainerStatuses", J_LIST, VIEW(init_statuses), .offset_n = VIEW(n_init_statuses),
     .table = &in_effect_table},
    {"resources", J_OBJECT, VIEW(pod.actual), .offset_is = VIEW(pod.reported), .table = &resources_table},
    {"allocatedResources", J_QUANTITIES, VIEW(pod.allocated)},
    {"conditions", J_LIST, VIEW(conditions), .offset_n = VIEW(n_conditions), .table = &condition_table});
// clang-format on

static bool resize_infeasible(const struct pod_view *v)
{
    const struct condition *c = condition_find(v->conditions, v->n_conditions, "PodResizePending");
    return c && str_eq(c->reason, "Infeasible");
}

static struct resources effective(const struct pod_view *v, const struct resources *asked, const struct in_effect *e,
                                  struct arena *a)
{
    struct resources r = {0};
    if (!e || !e->reported)
        return *asked;
    if (!resize_infeasible(v))
        r = *asked;
    resources_max(&r, &e->actual, a);
    resources_max(&r, &e->allocated, a);
    return r;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct in_effect *)a)->name, ((const struct in_effect *)b)->name);
}

// Sorts them once, because a pod may have thousands of containers with a status each.
static void sort_statuses(struct in_effect *items, size_t n)
{
    if (n > 1)
        qsort(items, n, sizeof *items, by_name);
}

static const struct in_effect *find_status(const struct in_effect *items, size_t n, const char *name)
{
    const struct in_effect key = {.name = name};
    return n ? bsearch(&key, items, n, sizeof *items, by_name) : NULL;
}

// Sums over the containers, by resource id. A list would have to be made again for each container.
struct sums {
    int64_t milli[RESOURCE_MAX];
};

static void sums_add(struct sums *t, const struct resources *r)
{
    for (size_t i = 0; i < r->n; i++)
        t->milli[r->items[i].id] = amount_add(t->milli[r->items[i].id], r->items[i].milli);
}

static void sums_max(struct sums *t, const struct sums *other)
{
    for (int id = 0; id < resource_count(); id++)
        t->milli[id] = MAX(t->milli[id], other->milli[id]);
}

static void add_init(const struct pod_view *v, struct sums *sum, struct arena *a)
{
    struct sums sidecars = {0}, largest = {0};
    for (size_t i = 0; i < v->n_init; i++) {
        const struct container_view *c = &v->init[i];
        if (str_eq(c->restart_policy, "Always")) {
            struct resources r =
                effective(v, &c->requests, find_status(v->init_statuses, v->n_init_statuses, c->name), a);
            sums_add(sum, &r);
            sums_add(&sidecars, &r);
            sums_max(&largest, &sidecars);
        } else {
            struct sums during = sidecars;
            sums_add(&during, &c->requests);
            sums_max(&largest, &during);
        }
    }
    sums_max(sum, &largest);
}

static bool pod_level(int id)
{
    return id == RESOURCE_CPU || id == RESOURCE_MEMORY || str_starts(resource_name(id), "hugepages-");
}

static void put_pod_level(const struct pod_view *v, struct sums *sum, struct arena *a)
{
    struct resources r = effective(v, &v->pod_requests, &v->pod, a);
    for (size_t i = 0; i < v->pod_requests.n; i++) {
        int id = v->pod_requests.items[i].id;
        if (pod_level(id))
            sum->milli[id] = resources_get(&r, id);
    }
}

static struct resources sums_list(const struct sums *t, struct arena *a)
{
    struct resources r = {0};
    for (int id = 0; id < resource_count(); id++)
        r.n += t->milli[id] != 0;
    r.items = arena_array(a, r.n, sizeof *r.items);
    r.n = 0;
    for (int id = 0; id < resource_count(); id++)
        if (t->milli[id])
            r.items[r.n++] = (struct resource){id, t->milli[id]};
    return r;
}

int pod_requests_decode(const struct json *root, struct arena *a, struct resources *ret, struct err *err)
{
    struct pod_view v = {0};
    struct sums sum = {.milli = {[RESOURCE_PODS] = 1000}};
    int r = json_decode(&spec_table, json_get(root, "spec"), "spec", &v, a, err);
    if (r == 0)
        r = json_decode(&status_table, json_get(root, "status"), "status", &v, a, err);
    if (r < 0)
        return r;
    sort_statuses(v.statuses, v.n_statuses);
    sort_statuses(v.init_statuses, v.n_init_statuses);
    for (size_t i = 0; i < v.n_containers; i++) {
        const struct container_view *c = &v.containers[i];
        struct resources one = effective(&v, &c->requests, find_status(v.statuses, v.n_statuses, c->name), a);
        sums_add(&sum, &one);
    }
    if (v.n_init)
        add_init(&v, &sum, a);
    put_pod_level(&v, &sum, a);
    sums_add(&sum, &v.overhead);
    *ret = sums_list(&sum, a);
    return 0;
}
