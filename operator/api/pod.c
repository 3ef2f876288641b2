// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod.h"

#include "operator/api/condition.h"
#include "operator/api/json_table.h"
#include "operator/api/pod_constraints.h"
#include "operator/api/pod_requests.h"

#define POD(member) offsetof(struct pod, member)
#define CONTAINER(member) offsetof(struct container_status, member)

static const char *const phase_names[] = {
    [POD_PENDING] = "Pending", [POD_RUNNING] = "Running", [POD_SUCCEEDED] = "Succeeded",
    [POD_FAILED] = "Failed",   [POD_UNKNOWN] = "Unknown", NULL};

// clang-format off
static const struct json_table spec_table = JSON_TABLE(struct pod,
    {"nodeName", J_STRING, POD(node)},
    {"priority", J_I32, POD(priority)});
static const struct json_table phase_table = JSON_TABLE(struct pod,
    {"phase", J_ENUM, POD(phase), .names = phase_names, .open_enum = true, .missing = POD_UNKNOWN});
static const struct json_table status_table = JSON_TABLE(struct pod,
    {"reason", J_STRING, POD(reason)},
    {"message", J_STRING, POD(message)},
    {"podIP", J_STRING, POD(ip)},
    {"startTime", J_TIME, POD(started_ms)});

// The state before the last restart does not matter, because our pods never restart a container.
static const struct json_table waiting_table = JSON_TABLE(struct container_status,
    {"reason", J_STRING, CONTAINER(reason)},
    {"message", J_STRING, CONTAINER(message)});
static const struct json_table running_table = JSON_TABLE(struct container_status,
    {"startedAt", J_TIME, CONTAINER(started_ms)});
static const struct json_table terminated_table = JSON_TABLE(struct container_status,
    {"reason", J_STRING, CONTAINER(reason)},
    {"message", J_STRING, CONTAINER(message)},
    {"exitCode", J_I32, CONTAINER(exit_code)},
    {"finishedAt", J_TIME, CONTAINER(finished_ms)});
static const struct json_table state_table = JSON_TABLE(struct container_status,
    {"waiting", J_OBJECT, .offset_is = CONTAINER(waiting), .table = &waiting_table},
    {"running", J_OBJECT, .table = &running_table},
    {"terminated", J_OBJECT, .offset_is = CONTAINER(terminated), .table = &terminated_table});
static const struct json_table container_table = JSON_TABLE(struct container_status,
    {"name", J_STRING, CONTAINER(name), .required = true},
    {"state", J_OBJECT, .table = &state_table});

struct status_view {
    struct container_status *init, *main;
    size_t n_init, n_main;
    struct condition *conditions;
    size_t n_conditions;
};
#define VIEW(member) offsetof(struct status_view, member)
static const struct json_table conditions_table = JSON_TABLE(struct status_view,
    {"conditions", J_LIST, VIEW(conditions), .offset_n = VIEW(n_conditions), .table = &condition_table});
static const struct json_table containers_table = JSON_TABLE(struct status_view,
    {"initContainerStatuses", J_LIST, VIEW(init), .offset_n = VIEW(n_init), .table = &container_table},
    {"containerStatuses", J_LIST, VIEW(main), .offset_n = VIEW(n_main), .table = &container_table});
// clang-format on

bool pod_is_foreign(const struct json *root)
{
    return !json_get(json_get(json_get(root, "metadata"), "labels"), LABEL_GROUP);
}

// If a node is silent, the node controller sets Ready of its pods to False. It sets no reason, and does not change
// ContainersReady. This is news about the node, not about the pod. The kubelet always gives a reason.
static bool is_ready(const struct condition *ready, const struct condition *containers)
{
    if (!ready || ready->status == CONDITION_TRUE)
        return ready;
    bool by_node_controller = !ready->reason || !*ready->reason;
    return by_node_controller && containers && containers->status == CONDITION_TRUE;
}

static void conditions_apply(struct pod *p, const struct status_view *v)
{
    struct arena *a = &p->obj.arena;
    const struct condition *ready = condition_find(v->conditions, v->n_conditions, "Ready");
    const struct condition *scheduled = condition_find(v->conditions, v->n_conditions, "PodScheduled");
    const struct condition *disruption = condition_find(v->conditions, v->n_conditions, "DisruptionTarget");
    p->ready = is_ready(ready, condition_find(v->conditions, v->n_conditions, "ContainersReady"));
    p->unschedulable = scheduled && scheduled->status == CONDITION_FALSE;
    if (p->unschedulable)
        p->unschedulable_message = arena_strdup(a, scheduled->message);
    if (disruption && disruption->status == CONDITION_TRUE)
        p->disruption = arena_strdup(a, disruption->reason ? disruption->reason : "");
}

static void containers_join(struct pod *p, const struct status_view *v)
{
    p->n_containers = v->n_init + v->n_main;
    p->containers = arena_array(&p->obj.arena, p->n_containers, sizeof *p->containers);
    for (size_t i = 0; i < p->n_containers; i++) {
        bool init = i < v->n_init;
        p->containers[i] = init ? v->init[i] : v->main[i - v->n_init];
        p->containers[i].init = init;
    }
}

static int status_decode(struct pod *p, const struct json *status, struct arena *scratch, struct err *err)
{
    struct status_view v = {0};
    int r = json_decode(&status_table, status, "status", p, &p->obj.arena, err);
    if (r == 0)
        r = json_decode(&conditions_table, status, "status", &v, scratch, err);
    if (r == 0)
        r = json_decode(&containers_table, status, "status", &v, &p->obj.arena, err);
    if (r != 0)
        return r;
    conditions_apply(p, &v);
    containers_join(p, &v);
    return 0;
}

int pod_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    struct pod *p = (struct pod *)o;
    const struct json *spec = json_get(root, "spec"), *status = json_get(root, "status");
    struct resources requests = {0};
    const char *pin = NULL;
    int r = json_decode(&spec_table, spec, "spec", p, &o->arena, err);
    if (r == 0)
        r = pod_pin_decode(spec, scratch, &pin, err);
    if (r == 0)
        r = pod_requests_decode(root, scratch, &requests, err);
    if (r < 0)
        return r;
    p->pin = arena_strdup(&o->arena, pin);
    p->requests.items = arena_memdup(&o->arena, requests.items, requests.n * sizeof *requests.items);
    p->requests.n = requests.n;
    r = json_decode(&phase_table, status, "status", p, &o->arena, err);
    return r < 0 || pod_is_foreign(root) ? r : status_decode(p, status, scratch, err);
}
