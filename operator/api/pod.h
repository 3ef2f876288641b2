// SPDX-License-Identifier: Apache-2.0
// Pods, reduced to what the cluster's accounting and our own groups need. For other pods (no LABEL_GROUP),
// only these fields are kept, about 0.5 KiB: name, namespace, uid, resourceVersion, times, node, pin, priority,
// requests and phase. The operator's own pods also keep their labels.
#pragma once

#include "operator/api/object.h"
#include "operator/api/resource.h"

#define LABEL_GROUP "cadre.dev/group" // of our own pods: the name of their gang

struct json;

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

struct container_status {
    const char *name;
    bool init;
    bool waiting, terminated; // if neither: running, or not reported yet
    const char *reason;       // of the waiting or terminated state
    const char *message;      // terminated: last lines of output (terminationMessagePolicy FallbackToLogsOnError)
    int32_t exit_code;
    int64_t started_ms; // of a running container
    int64_t finished_ms;
};

struct pod {
    struct object obj; // first: a `struct pod *` is a `struct object *`
    const char *node;  // spec.nodeName, NULL until bound
    const char *pin;   // the one node that all required terms name by matchFields on metadata.name, NULL if none
    int32_t priority;
    // As kube-scheduler counts them (pod_requests.h), and 1 of RESOURCE_PODS.
    struct resources requests;
    enum pod_phase phase;
    // The rest is only for the operator's own pods.
    const char *reason, *message; // status.reason, status.message
    const char *ip;
    int64_t started_ms;
    // from the conditions
    bool ready;         // as the kubelet says, even if the node is gone
    bool unschedulable; // PodScheduled=False
    const char *unschedulable_message;
    const char *disruption;              // reason of DisruptionTarget=True, NULL if none
    struct container_status *containers; // init containers first
    size_t n_containers;
};

static inline const struct pod *pod_of(const struct object *o)
{
    return (const struct pod *)o;
}

static inline bool pod_terminal(const struct pod *p)
{
    return p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

// For object_decode().
int pod_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
bool pod_is_foreign(const struct json *root); // no LABEL_GROUP
