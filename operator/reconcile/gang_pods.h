// SPDX-License-Identifier: Apache-2.0
// The state of a gang as its pods show it, for both kinds of owner: counted once, then only read.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/workergroup.h"
#include "operator/reconcile/view.h"

struct gang_pods { // the state of the gang
    // The present ones, from the status. If somebody has deleted the status, they come from the pods. Pods of a
    // PlacementGroup have no attempt.
    int32_t attempt, incarnation;
    const struct pod *const *live; // the pods that count; NULL = missing
    size_t n_live;
    int32_t existing, bound, ready; // of these
    const struct pod **gone;        // all other pods: of earlier attempts or incarnations, or lost
    size_t n_gone;
    bool own_failure;     // one of them has failed by itself, and is not being deleted yet
    bool older;           // some live pods belong to an earlier incarnation, and stay
    bool from_the_future; // a young pod of a later incarnation exists: our view of the status is old, so do nothing yet
    struct wait status;   // the wait for that status
    int64_t newest_ms;    // creation of the youngest live pod: all of them exist since then
    const struct pod *unschedulable; // the first pod that kube-scheduler could not bind
    const struct pod *stuck; // the first pod that waits for something that will not come by itself, such as an image
    const struct container_status *stuck_container;
    const char *stuck_reason; // REASON_IMAGE or REASON_CONTAINER_CONFIG
    int64_t look_again_ms;    // time until a silent node counts as lost; -1 = none is silent
};

// Looks for pods of an attempt or an incarnation that `pods` does not know yet. Such pods mean that our view of the
// status is older than they are. While they are young, `from_the_future` is set. Later the status counts as lost, and
// the attempt and incarnation of the pods are taken. If the API server's clock is ahead, our own clock measures that
// time (`status`).
void gang_pods_look_ahead(struct gang_pods *pods, const struct gang_view *v);
// Counts a live pod: sets existing, bound, ready, newest_ms, unschedulable and stuck. A pod on a silent node is not
// ready, because nobody knows its state.
void gang_pods_count(struct gang_pods *pods, const struct gang_view *v, const struct pod *p);
void gang_pods_look_again(struct gang_pods *pods, int64_t ms);

// Returns true if the node of this pod has been silent for longer than node_lost_s, or is gone. If it is silent but not
// lost yet, *ret_ms (if not NULL) is the time until it counts as lost.
bool pod_node_gone(const struct cluster *cluster, const struct pod *p, int32_t node_lost_s, int64_t now_ms,
                   int64_t *ret_ms);
const char *pod_place(const struct pod *p); // the node where the pod is or will be

// The replicas or bundles on each node, or those that will be there, in the order of their first index. of: their pods
// by index, NULL = none.
size_t gang_pods_placements(const struct pod *const *of, int32_t n, struct arena *a, struct node_ranges **ret);
// For example "bundles 0-3 on n1, 4-7 on n2", cut to what an Event takes.
const char *gang_pods_placements_text(const char *word, const struct node_ranges *items, size_t n, struct arena *a);
