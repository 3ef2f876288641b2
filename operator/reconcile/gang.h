// SPDX-License-Identifier: Apache-2.0
// One decision about a gang, until all of its pods are bound. The gang is the pods of a WorkerGroup, or the pods with
// the bundles of a PlacementGroup. struct gang_owner contains the differences between the two. Private to
// operator/reconcile.
//
// gang_create.h creates missing pods. gang_whole.h takes over when all of them exist.
#pragma once

#include "operator/placement/planner.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/gang_pods.h"
#include "operator/reconcile/view.h"

struct gang_dry_run { // a pod that the API server checks in a dry run
    uint64_t hash;    // covers everything that the verdict depends on
    int32_t bundle;   // the pod has this bundle
};

struct gang_decision {
    const struct gang_owner *owner;
    const struct gang_view *v;
    const struct object *object; // the owner of the gang
    struct arena *a;
    struct plan *plan;
    struct conditions conditions;
    const char *name; // of the Service; the names of dry run pods begin with it
    const struct gang_spec *spec;
    int32_t size;        // replicas or bundles
    int32_t incarnation; // of the status that the decision leads to
    bool on_bundles;     // the pods belong to PlacementGroups, which replace them
    bool needs_setup;    // its pods have an agent
    bool edited;         // the status was written for an earlier spec
    bool begun;          // some of the pods were created already: no backoff delays the others
    bool refused;        // the API server refused a creation or a dry run, so the gang is given back
    bool service_first;  // no pod is created before the Service exists
    bool status_first;   // the status is written before everything else
    int64_t pause_ms;    // until the next attempt; 0 = none
    const char *pause_text;
    const char *gone_text; // the message while old pods have to go first
    struct gang_dry_run *dry_runs;
    size_t n_dry_runs; // 0: the gang does not create its pods
    struct gang_pods *pods;
};

struct gang_owner {
    // The status with these conditions, which are in the arena. ctx is the decision.
    void (*draft)(void *ctx, struct condition *items, size_t n, struct status_draft *ret);
    // The pod for this dry run, with this name. If this function or one below returns false, Accepted says why there
    // can be no pods.
    bool (*dry_run)(struct gang_decision *g, const struct gang_dry_run *run, const char *name, const char **ret_body);
    // The Service to create, or NULL if none is needed (yet). Called only if there is no Service.
    const char *(*service)(struct gang_decision *g);
    // The requests of each replica or bundle. `beside`: the pods that exist stay where they are.
    bool (*bundles)(struct gang_decision *g, bool beside, struct bundle *ret);
    // Adds the creations of the missing pods to the plan. *ret_n is their number, for a message.
    bool (*create)(struct gang_decision *g, const struct placement *placed, size_t *ret_n);
    // Deletes the pods that were never all bound together, if there are any. The conditions and the status say why.
    void (*give_back)(struct gang_decision *g, const char *reason, const char *message);
    // placement.nodeLostSeconds for this pod. NULL: the seconds of the spec.
    int32_t (*node_lost_s)(struct gang_decision *g, const struct pod *p);
};

// Writes the status if anything in it has changed. Looks again when a silent node may be lost.
void gang_settle(struct gang_decision *g);
// Writes the status if anything in it has changed. at_once: before everything else in the plan.
void gang_commit(struct gang_decision *g, bool at_once);
// Sets Scheduled and Ready to False with this reason, and settles.
void gang_wait(struct gang_decision *g, const char *reason, const char *message);
// The view is older than the pods in it: does nothing, keeps all waits, and looks again soon.
void gang_postpone(struct gang_decision *g);

// Returns the number after n, the number of an incarnation, an attempt or a restart. Others can write such numbers into
// the status, so the largest one is returned unchanged.
int32_t gang_next(int32_t n);
// The status goes to the next incarnation, and is written before anything else. Scheduled and Ready become False with
// this reason. A crash after that write leaves pods of an earlier incarnation, which the next decision handles.
void gang_begin_incarnation(struct gang_decision *g, const char *reason, const char *message);
// Sets Accepted to False because the template cannot be used. Copies the message. Returns false.
bool gang_invalid(struct gang_decision *g, const char *message);
// Adds the creation of a pod to the plan. The cluster counts `requests` on this node from then on.
void gang_add_pod(struct gang_decision *g, const char *name, const char *body, const char *node,
                  const struct resources *requests);
// Deletes a pod unless its deletion is under way. If its node is lost, it is deleted by force. If the gang
// is on bundles, lost or ended pods are left to their PlacementGroup.
void gang_delete_pod(struct gang_decision *g, const struct pod *p, int stage);
// Deletes all pods that do not count.
void gang_delete_gone(struct gang_decision *g, int stage);
