// SPDX-License-Identifier: Apache-2.0
// The cluster as the benchmark sees and loads it: one client, a mirror of the pods and groups of one namespace, and a
// trial at a time, whose pods are counted as they come and run. Functions that wait turn the loop; what cannot go on
// ends the program with a message.
#pragma once

#include "common/base/loop.h"
#include "operator/kube/kube_client.h"
#include "operator/runtime/reflector.h"

#include <sys/types.h>

enum { GROUP_SIZE = 8, PREFIX_MAX = 32, COMPONENTS_MAX = 16 };

// Pods of the floor, each pinned to its node, GROUP_SIZE to a node (but for POD_FREE).
enum pod_kind {
    POD_BARE,  // nothing but the container
    POD_ALIKE, // as the operator makes it, with environment, labels and host name, but without owner and Service
    POD_IDLE,  // bare, and never bound
    POD_FREE,  // bare, and kube-scheduler chooses the node
};

// The pod of a group and the pod of the floor: the same container, account and grace period.
#define WORLD_POD_SPEC                                                                                            \
    "\"terminationGracePeriodSeconds\":1,\"containers\":[{\"name\":\"worker\",\"image\":\"none\",\"resources\":{" \
    "\"requests\":{\"cpu\":\"100m\",\"memory\":\"64Mi\"},\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]"

struct trial {
    char prefix[PREFIX_MAX]; // of the names of its pods and groups
    int want_pods, want_groups;
    int64_t began_us;
    int seen, running, ready, gone; // pods that came, pods that run, groups with Ready True, pods that went
    int64_t seen_us, running_us, ready_us, gone_us; // when the last one of `want` did; 0 = not yet
};

struct world {
    struct loop *loop;
    struct kube_config config;
    struct kube_client *client;
    const char *ns;
    struct store *pods, *groups, *placementgroups, *nodes;
    struct reflector *reflectors[4];
    const char **node_names; // in natural order
    // For pods that are like the pods of such an object: a WorkerGroup of GROUP_SIZE, a PlacementGroup of one bundle.
    const struct object *model, *placementgroup_model;
    size_t n_nodes;
    pid_t components[COMPONENTS_MAX]; // whose CPU time is counted: of the control plane, and the operator
    size_t n_components;
    double idle; // CPUs that these take when nothing is asked of them; 0 = not known
    struct trial trial;
    int answers; // of requests sent by world_send() and not answered
};

void world_open(struct world *w, const char *kubeconfig, const char *ns);
void world_close(struct world *w);

// A failure ends the program, but not "not found".
void world_send(struct world *w, const struct kube_request *r);
// The clock starts, for objects that come or go by other means: what was counted for the trial before is forgotten.
void world_begin(struct world *w, const char *prefix, int pods, int groups);
// Creates `n` pods, or `n` groups of GROUP_SIZE, and starts the clock. Wait for what is wanted with world_wait().
void world_create_pods(struct world *w, const char *prefix, int n, enum pod_kind kind);
void world_create_groups(struct world *w, const char *prefix, int n);
void world_create_placementgroups(struct world *w, const char *prefix, int n, int bundles); // a pod a bundle
// The clock starts again for the end of `pods` pods, which follows from the deletion of all objects of the prefix.
void world_delete(struct world *w, const char *prefix, int pods);
// The clock starts again for `pods` pods that follow from the deletion of this one.
void world_delete_pod(struct world *w, const char *prefix, const char *name, int pods);
const char *world_pod_body(const struct world *w, struct arena *a, const char *name, int index, enum pod_kind kind);

// Until the counter behind `us` (a member of w->trial) has come to what is wanted.
void world_wait(struct world *w, const int64_t *us, int timeout_s, const char *what);
void world_wait_answers(struct world *w);
void world_sleep(struct world *w, int64_t ms);
double world_cpu_s(const struct world *w); // of all components so far
// Until the components have little left to do, so that one trial does not pay for the one before.
void world_quiesce(struct world *w);
// Deletes everything of the prefix and waits until it is gone.
void world_clean(struct world *w, const char *prefix);
