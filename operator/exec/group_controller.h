// SPDX-License-Identifier: Apache-2.0
// Keeps every WorkerGroup as its spec says. It listens to the stores, keeps the cluster's accounting, and runs snapshot
// -> plan -> execution for each group that has changed.
#pragma once

#include "operator/agents/replica_reports.h"
#include "operator/exec/reconciler.h"
#include "operator/proxy/router.h"
#include "operator/reconcile/group_reconcile.h"

struct group_controller;

struct group_controller_options {
    struct kube_client *client;
    // Indexed by enum kind; NULL = there is no store of that kind. The controller subscribes to the stores of pods,
    // nodes, Services, EndpointSlices, WorkerGroups and PlacementGroups.
    struct store *const *stores;
    struct agents *agents; // the controller tells them which pods are gone; NULL: no agent ever connects
    struct router *router; // its members are the worker processes that take calls; NULL: there are none
    const struct replica_reports *reports;      // what other replicas see; NULL: there are none
    const struct excluded_namespaces *excluded; // namespaces that this controller leaves alone; NULL: there are none
    struct recorder *recorder;
    struct metrics *metrics;
    const struct clock *clock;
    uint64_t seed;
};

// Follows the stores from now on. It decides nothing before group_controller_start(). Start it when the mirrors are
// complete and this replica leads.
struct group_controller *group_controller_new(struct loop *loop, const struct group_controller_options *options);
// Sets the settings of new pods that have an agent. They are copied. No such pod is created before the first call.
void group_controller_setup(struct group_controller *c, const struct agent_setup *setup);
// Returns what the controller of PlacementGroups shares with this one: the room that both plan with, the gangs that
// wait for it, the dry runs, and the time of decisions. Borrowed.
struct controller_shared *group_controller_shared(struct group_controller *c);
// Call this when agents have reported something new about this group, or when other workers take its calls than before.
// It decides again in a moment, once for all changes until then. You can call it from anywhere, also inside a callback
// of the agents or the router.
void group_controller_changed(struct group_controller *c, const char *ns, const char *name);
// Call this when the agent of a pod of this PlacementGroup has changed. It decides again about the group with this UID.
// NULL: it decides about all groups on the PlacementGroup, and the agent stops processes of groups that do not use it.
void group_controller_placementgroup_changed(struct group_controller *c, const char *ns, const char *placementgroup,
                                             const char *group_uid);
// group_controller_has_user() returns true if the WorkerGroup with this UID runs on the PlacementGroup. UID NULL: if
// any group does. group_controller_place() returns the pod with this rank of a group that runs on PlacementGroups, or
// NULL if it is not known.
bool group_controller_has_user(const struct group_controller *c, const char *ns, const char *placementgroup,
                               const char *group_uid);
const struct pod *group_controller_place(const struct group_controller *c, const struct workergroup *wg, int32_t rank,
                                         struct arena *a);
void group_controller_start(struct group_controller *c); // may be called again after a stop
void group_controller_stop(struct group_controller *c);  // begins nothing new
// Call this when the API server answers again, after it did not for away_ms. It tries failed writes again at once, and
// gives nodes time to report to the API server.
void group_controller_retry(struct group_controller *c, int64_t away_ms);
// Call this when the excluded namespaces have changed. It looks at all groups.
void group_controller_look(struct group_controller *c);
bool group_controller_idle(const struct group_controller *c);
// Call this only when idle, or after the client is freed, which ends all requests. The stores must not change any more.
void group_controller_free(struct group_controller *c);
