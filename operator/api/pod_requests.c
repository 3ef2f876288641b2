// SPDX-License-Identifier: Apache-2.0
// What a pod takes from its node, as kube-scheduler counts it (component-helpers/resource PodRequests of 1.36; KEP-753
// for sidecars, KEP-2837 for pod-level resources, KEP-1287 for resize in place):
//
//   container         requests; once kubelet reports what is allocated or in effect, the largest of the three, or of
//                     those two alone where the resize is infeasible
//   init container    its requests + those of all sidecars before it; the pod needs the largest
//   sidecar           (init container, restartPolicy Always) counts as a container and as an init container
//   pod               max(sum of containers and sidecars, largest init container), per resource;
//                     cpu, memory and hugepages replaced by spec.resources.requests where given; + overhead; 1 pod
#include "common/base/str.h"
#include "operator/api/tables.h"

struct container {
    const char *name, *restart_policy;
    struct resources requests;
};

struct in_effect {
    const char *name;
    bool reported;
    struct resources actual, allocated;
};

struct pod_view {
    struct container *containers, *init;
    size_t n_containers, n_init;
    struct resources overhead, pod_requests;
    struct in_effect *statuses, *init_statuses;
    size_t n_statuses, n_init_statuses;
    struct in_effect pod; // of the pod's own resources
    struct condition *conditions;
    size_t n_conditions;
};

#define VIEW(member) offsetof(struct pod_view, member)
#define CONTAINER(member) offsetof(struct container, member)
#define EFFECT(member) offsetof(struct in_effect, member)

static JSON_TABLE(container_resources_table, struct container,
                  {.name = "requests", .kind = J_QUANTITIES, .offset = CONTAINER(requests)});
static JSON_TABLE(container_table, struct container,
                  {.name = "name", .kind = J_STRING, .offset = CONTAINER(name)},
                  {.name = "resources", .kind = J_OBJECT, .table = &container_resources_table},
                  {.name = "restartPolicy", .kind = J_STRING, .offset = CONTAINER(restart_policy)});
static JSON_TABLE(actual_table, struct in_effect,
                  {.name = "requests", .kind = J_QUANTITIES, .offset = EFFECT(actual)});
static JSON_TABLE(in_effect_table, struct in_effect,
                  {.name = "name", .kind = J_STRING, .offset = EFFECT(name)},
                  {.name = "resources", .kind = J_OBJECT, .table = &actual_table, .offset_is = EFFECT(reported)},
                  {.name = "allocatedResources", .kind = J_QUANTITIES, .offset = EFFECT(allocated)});
static JSON_TABLE(pod_resources_table, struct pod_view,
                  {.name = "requests", .kind = J_QUANTITIES, .offset = VIEW(pod_requests)});
static JSON_TABLE(spec_table, struct pod_view,
                  {.name = "containers", .kind = J_LIST, .table = &container_table, .offset = VIEW(containers),
                   .offset_n = VIEW(n_containers)},
                  {.name = "initContainers", .kind = J_LIST, .table = &container_table, .offset = VIEW(init),
                   .offset_n = VIEW(n_init)},
                  {.name = "overhead", .kind = J_QUANTITIES, .offset = VIEW(overhead)},
                  {.name = "resources", .kind = J_OBJECT, .table = &pod_resources_table});
static JSON_TABLE(status_table, struct pod_view,
                  {.name = "containerStatuses", .kind = J_LIST, .table = &in_effect_table, .offset = VIEW(statuses),
                   .offset_n = VIEW(n_statuses)},
                  {.name = "initContainerStatuses", .kind = J_LIST, .table = &in_effect_table,
                   .offset = VIEW(init_statuses), .offset_n = VIEW(n_init_statuses)},
                  {.name = "resources", .kind = J_OBJECT, .table = &actual_table,
                   .offset = VIEW(pod), .offset_is = VIEW(pod.reported)},
                  {.name = "allocatedResources", .kind = J_QUANTITIES, .offset = VIEW(pod.allocated)},
                  {.name = "conditions", .kind = J_LIST, .table = &condition_table, .offset = VIEW(conditions),
                   .offset_n = VIEW(n_conditions)});

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

static const struct in_effect *find_status(const struct in_effect *items, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(items[i].name, name))
            return &items[i];
    return NULL;
}

static void add_init(const struct pod_view *v, struct resources *sum, struct arena *a)
{
    struct resources sidecars = {0}, largest = {0};
    for (size_t i = 0; i < v->n_init; i++) {
        const struct container *c = &v->init[i];
        if (str_eq(c->restart_policy, "Always")) {
            struct resources r =
                effective(v, &c->requests, find_status(v->init_statuses, v->n_init_statuses, c->name), a);
            resources_add(sum, &r, a);
            resources_add(&sidecars, &r, a);
            resources_max(&largest, &sidecars, a);
        } else {
            struct resources during = sidecars;
            resources_add(&during, &c->requests, a);
            resources_max(&largest, &during, a);
        }
    }
    resources_max(sum, &largest, a);
}

static bool pod_level(int id)
{
    return id == RESOURCE_CPU || id == RESOURCE_MEMORY || str_starts(resource_name(id), "hugepages-");
}

static void put_pod_level(const struct pod_view *v, struct resources *sum, struct arena *a)
{
    struct resources r = effective(v, &v->pod_requests, &v->pod, a);
    for (size_t i = 0; i < v->pod_requests.n; i++) {
        int id = v->pod_requests.items[i].id;
        if (!pod_level(id))
            continue;
        struct resource one = {id, resources_get(&r, id) - resources_get(sum, id)};
        resources_add(sum, &(struct resources){&one, 1}, a);
    }
}

int pod_requests_decode(const struct json *root, struct arena *a, struct resources *ret, struct err *err)
{
    struct pod_view v = {0};
    struct resource pod = {RESOURCE_PODS, 1000};
    int r = json_decode(&spec_table, json_get(root, "spec"), "spec", &v, a, err);
    if (r == 0)
        r = json_decode(&status_table, json_get(root, "status"), "status", &v, a, err);
    if (r < 0)
        return r;
    *ret = (struct resources){0};
    for (size_t i = 0; i < v.n_containers; i++) {
        const struct container *c = &v.containers[i];
        struct resources one = effective(&v, &c->requests, find_status(v.statuses, v.n_statuses, c->name), a);
        resources_add(ret, &one, a);
    }
    add_init(&v, ret, a);
    put_pod_level(&v, ret, a);
    resources_add(ret, &v.overhead, a);
    resources_add(ret, &(struct resources){&pod, 1}, a);
    return 0;
}
