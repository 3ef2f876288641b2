// SPDX-License-Identifier: Apache-2.0
// What the pods of a PlacementGroup say about it: counted once, then only read.
//
// A pod that lives holds its bundles, as its annotations say. Those of an earlier incarnation than the present one have
// once been bound with all the others, and stay whatever becomes of the rest. Those of the present one do so too as
// soon as the status has said so (Scheduled); before that they are created, and given back, all or none.
#ifndef CADRE_RECONCILE_RESERVATION_H
#define CADRE_RECONCILE_RESERVATION_H

#include "operator/reconcile/bundles.h"
#include "operator/reconcile/placementgroup.h"

struct reservation {
    int32_t incarnation;       // the present one, from the status
    const struct pod **holder; // by bundle, NULL = nobody
    const struct pod **live;   // those that hold some, by the first of their bundles
    bool *differs;             // of each: made from another template, or for bundles of another shape
    size_t n_live;
    const struct pod **dead; // all others: ended, lost, being deleted, or with nothing left to hold
    size_t n_dead;
    int32_t held, bound; // bundles
    size_t bound_pods, ready_pods;
    bool changed;           // one of the live pods differs
    bool own_failure;       // a dead pod has failed by itself, and is not being deleted yet
    bool from_the_future;   // a young pod of a later incarnation: our status is old, so do nothing yet
    int64_t newest_ms;      // creation of the youngest live pod that is not bound
    const struct pod *lost; // the first dead one of which bundles are missing, and why
    const char *lost_reason;
    const struct pod *unschedulable; // first pod that kube-scheduler could not bind
    const struct pod *stuck;         // first that waits for what will not come by itself, such as an image
    const struct container_status *stuck_container;
    const char *stuck_reason;
    int64_t look_again_ms; // when a silent node will count as lost, from now; -1 = none is silent
};

void reservation_take(const struct placementgroup_view *v, const struct bundles *b, uint64_t template_hash,
                      struct arena *a, struct reservation *ret);

// "[{node, bundles}]" of live pods that are bound or pinned, in the order of their first bundle.
size_t reservation_placements(const struct reservation *r, const struct bundles *b, struct arena *a,
                              struct node_bundles **ret);

const char *reservation_place(const struct pod *p); // where it is or is to be

#endif
