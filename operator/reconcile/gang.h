// SPDX-License-Identifier: Apache-2.0
// One decision about a gang, until all of its pods are bound: the pods of a WorkerGroup, or the pods with the bundles
// of a PlacementGroup. struct gang_owner has the differences between the two. Private to operator/reconcile.
//
// The checks run in the order in which a person would want to know of them: dry runs, the name of the Service, backoff,
// room. After all of them, the pods are created, all or none. Pods that are not all bound in time are given back.
#pragma once

#include "operator/placement/planner.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/gang_pods.h"
#include "operator/reconcile/view.h"

struct gang_trial { // a pod that the API server is asked about by a dry run
    uint64_t hash;  // of what its verdict depends on
    int32_t bundle; // that it has
};

struct gang_decision {
    const struct gang_owner *owner;
    const struct gang_view *v;
    const struct object *object; // whose gang it is
    struct arena *a;
    struct plan *plan;
    struct conditions conditions;
    const char *name; // of the Service; names of pods begin with it
    enum strategy strategy;
    const char *topology_key;
    int32_t timeout_s;  // to bind all pods
    int32_t size;       // replicas or bundles
    bool needs_setup;   // its pods have an agent
    bool edited;        // the status does not know the present spec
    bool begun;         // some of the pods were created: no backoff holds up the others
    bool refused;       // a creation or a dry run was refused, which costs the gang
    bool service_first; // where the name of the Service is taken, no pod is made
    bool status_first;  // what follows must not happen before the status is written
    int64_t pause_ms;   // before the next attempt: what is left; 0 = none
    const char *pause_text;
    const char *gone_text; // while pods go that have to go first
    struct gang_trial *trials;
    size_t n_trials; // 0: others make the pods
    struct gang_pods *pods;
};

struct gang_owner {
    // The status with these conditions. ctx: the decision.
    void (*draft)(void *ctx, const struct condition *items, size_t n, struct status_draft *ret);
    // The pod that is tried, under this name. false, as in all of these: Accepted says why there can be none.
    bool (*trial)(struct gang_decision *g, const struct gang_trial *t, const char *name, const char **ret_body);
    // The Service that is missing, NULL if none is (yet).
    const char *(*service)(struct gang_decision *g);
    // What each replica or bundle asks for. beside: those that are there stay where they are.
    bool (*bundles)(struct gang_decision *g, bool beside, struct bundle *ret);
    // Adds the creations of the missing pods to the plan. *ret_n: how many, for a message.
    bool (*create)(struct gang_decision *g, const struct placement *placed, size_t *ret_n);
    // The pods that were never bound all together go, if there are some; the conditions say why, and are written.
    void (*give_back)(struct gang_decision *g, const char *reason, const char *message);
    // Unless that is under way; by force if its node will never confirm.
    void (*delete_pod)(struct gang_decision *g, const struct pod *p, int stage);
};

// Writes the conditions and what else is in the status, if anything has changed; looks again when a node may be lost.
void gang_settle(struct gang_decision *g);
void gang_commit(struct gang_decision *g, bool at_once); // only the former
// Nothing may be created yet: says why, and settles.
void gang_wait(struct gang_decision *g, const char *reason, const char *message);

// Some pods are missing.
void gang_create(struct gang_decision *g);
// All pods are there, but kube-scheduler has not bound them all.
void gang_bind(struct gang_decision *g);
// The API server's verdict on the pods of the present spec, also said in Accepted. UNKNOWN: the plan asks, or asks
// again later.
enum gang_verdict { GANG_OK, GANG_REFUSED, GANG_UNKNOWN };
enum gang_verdict gang_judge(struct gang_decision *g);
// No nodes that exist could ever take the present spec: why not, and the plan looks again when they change. NULL: it is
// worth a try, or not known yet.
const char *gang_hopeless(struct gang_decision *g);
// The Service of a gang that has its pods is there, or is made again.
void gang_keep_service(struct gang_decision *g);
// A creation was refused a short time ago, and not a dry run of another spec, which somebody has taken back.
bool gang_refused_lately(const struct gang_decision *g);
// Of the pod that is stuck.
const char *gang_stuck_text(struct gang_decision *g);
