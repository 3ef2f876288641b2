// SPDX-License-Identifier: Apache-2.0
// What the pods of a gang say about it, for both kinds of owner: counted once, then only read.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/workergroup.h"
#include "operator/reconcile/view.h"

struct gang_pods { // what the pods of the owner say about the gang
    // The present ones, from the status, or from the pods if somebody has lost the status. Pods of a PlacementGroup
    // have no attempt.
    int32_t attempt, incarnation;
    const struct pod *const *live; // those that count; NULL = missing
    size_t n_live;
    int32_t existing, bound, ready; // of these
    const struct pod **gone;        // all others: of earlier attempts or incarnations, or lost
    size_t n_gone;
    bool own_failure;                // one of those has failed by itself, and is not being deleted yet
    bool older;                      // some of the live ones are of an earlier incarnation, and stay
    bool from_the_future;            // a young pod of a later incarnation: our status is old, so do nothing yet
    int64_t newest_ms;               // creation of the youngest live pod: all are there since then
    const struct pod *unschedulable; // the first that kube-scheduler could not bind
    const struct pod *stuck;         // the first that waits for what will not come by itself, such as an image
    const struct container_status *stuck_container;
    const char *stuck_reason; // REASON_IMAGE or REASON_CONTAINER_CONFIG
    int64_t look_again_ms;    // when a silent node will count as lost, from now; -1 = none is silent
};

// Looks for pods of an attempt or an incarnation that `pods` does not know: our view of the status is older than they
// are. While such pods are young, `from_the_future` is set. Later the status is considered lost, and the attempt and
// the incarnation of the pods count.
void gang_pods_look_ahead(struct gang_pods *pods, const struct gang_view *v);
// A live pod is there: tells existing, bound, ready, newest_ms, unschedulable and stuck. Nobody knows how a pod is
// whose node is silent: it is not ready.
void gang_pods_count(struct gang_pods *pods, const struct gang_view *v, const struct pod *p);
void gang_pods_look_again(struct gang_pods *pods, int64_t ms);

// The node of this pod has been silent for longer than node_lost_s, or is gone. If it is silent but not yet for so
// long, *ret_ms (if not NULL) is when it will count as lost, from now.
bool pod_node_gone(const struct cluster *cluster, const struct pod *p, int32_t node_lost_s, int64_t now_ms,
                   int64_t *ret_ms);
// It is not bound, and the node that it is to go to does not exist (any more).
bool pod_pinned_astray(const struct cluster *cluster, const struct pod *p);
const char *pod_place(const struct pod *p); // the node where it is or is to be

// Which replicas or bundles (by index, NULL = none) are on which node or are to be, in the order of their first index.
size_t gang_pods_placements(const struct pod *const *of, int32_t n, struct arena *a, struct node_ranges **ret);
// "bundles 0-3 on n1, 4-7 on n2", as much as an Event takes.
const char *gang_pods_placements_text(const char *word, const struct node_ranges *items, size_t n, struct arena *a);
