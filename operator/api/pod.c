// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod.h"

#include "common/base/str.h"
#include "operator/api/tables.h"

#include <string.h>

#define POD(member) offsetof(struct pod, member)
#define CONTAINER(member) offsetof(struct container_status, member)

static const char *const phase_names[] = {
    [POD_PENDING] = "Pending", [POD_RUNNING] = "Running", [POD_SUCCEEDED] = "Succeeded",
    [POD_FAILED] = "Failed",   [POD_UNKNOWN] = "Unknown", NULL};

static JSON_TABLE(spec_table, struct pod,
                  {.name = "nodeName", .kind = J_STRING, .offset = POD(node)},
                  {.name = "priority", .kind = J_I32, .offset = POD(priority)});
#define PHASE                                                                                      \
    {                                                                                              \
        .name = "phase", .kind = J_ENUM, .names = phase_names, .open_enum = true, .offset = POD(phase)             \
    }
static JSON_TABLE(status_short_table, struct pod, PHASE);
static JSON_TABLE(status_table, struct pod, PHASE,
                  {.name = "reason", .kind = J_STRING, .offset = POD(reason)},
                  {.name = "message", .kind = J_STRING, .offset = POD(message)},
                  {.name = "podIP", .kind = J_STRING, .offset = POD(ip)},
                  {.name = "startTime", .kind = J_TIME, .offset = POD(started_ms)});

// The state before the last restart is of no interest: our pods never restart a container.
static JSON_TABLE(waiting_table, struct container_status,
                  {.name = "reason", .kind = J_STRING, .offset = CONTAINER(reason)},
                  {.name = "message", .kind = J_STRING, .offset = CONTAINER(message)});
static JSON_TABLE(terminated_table, struct container_status,
                  {.name = "reason", .kind = J_STRING, .offset = CONTAINER(reason)},
                  {.name = "message", .kind = J_STRING, .offset = CONTAINER(message)},
                  {.name = "exitCode", .kind = J_I32, .offset = CONTAINER(exit_code)},
                  {.name = "finishedAt", .kind = J_TIME, .offset = CONTAINER(finished_ms)});
static JSON_TABLE(state_table, struct container_status,
                  {.name = "waiting", .kind = J_OBJECT, .table = &waiting_table, .offset_is = CONTAINER(waiting)},
                  {.name = "terminated", .kind = J_OBJECT, .table = &terminated_table,
                   .offset_is = CONTAINER(terminated)});
static JSON_TABLE(container_table, struct container_status,
                  {.name = "name", .kind = J_STRING, .required = true, .offset = CONTAINER(name)},
                  {.name = "state", .kind = J_OBJECT, .table = &state_table});

struct status_view {
    struct container_status *init, *main;
    size_t n_init, n_main;
    struct condition *conditions;
    size_t n_conditions;
};
#define VIEW(member) offsetof(struct status_view, member)
static JSON_TABLE(conditions_table, struct status_view,
                  {.name = "conditions", .kind = J_LIST, .table = &condition_table, .offset = VIEW(conditions),
                   .offset_n = VIEW(n_conditions)});
static JSON_TABLE(containers_table, struct status_view,
                  {.name = "initContainerStatuses", .kind = J_LIST, .table = &container_table, .offset = VIEW(init),
                   .offset_n = VIEW(n_init)},
                  {.name = "containerStatuses", .kind = J_LIST, .table = &container_table, .offset = VIEW(main),
                   .offset_n = VIEW(n_main)});

bool pod_is_foreign(const struct json *root)
{
    return !json_get(json_get(json_get(root, "metadata"), "labels"), "cadre.dev/group");
}

static void conditions_apply(struct pod *p, const struct status_view *v)
{
    struct arena *a = &p->obj.arena;
    const struct condition *ready = condition_find(v->conditions, v->n_conditions, "Ready");
    const struct condition *scheduled = condition_find(v->conditions, v->n_conditions, "PodScheduled");
    const struct condition *disruption = condition_find(v->conditions, v->n_conditions, "DisruptionTarget");
    p->ready = ready && ready->status == CONDITION_TRUE;
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
    if (r < 0)
        return r;
    conditions_apply(p, &v);
    containers_join(p, &v);
    return 0;
}

int pod_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    struct pod *p = (struct pod *)o;
    const struct json *spec = json_get(root, "spec"), *status = json_get(root, "status");
    struct resources requests;
    const char *pin;
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
    if (pod_is_foreign(root))
        return json_decode(&status_short_table, status, "status", p, &o->arena, err);
    return status_decode(p, status, scratch, err);
}
