// SPDX-License-Identifier: Apache-2.0
// Keeps every WorkerGroup as its spec says. It listens to the stores, keeps the cluster's accounting, and runs snapshot
// -> plan -> execution for each group that something has changed for.
#pragma once

#include "operator/agents/replica_reports.h"
#include "operator/exec/entries.h"
#include "operator/proxy/router.h"
#include "operator/reconcile/group_reconcile.h"

struct group_controller;

struct group_controller_options {
    struct kube_client *client;
    // By enum kind; the controller subscribes to those of pods, nodes, Services, EndpointSlices, WorkerGroups and
    // PlacementGroups. NULL: there are none of that kind.
    struct store *const *stores;
    struct agents *agents;                 // told of pods that are gone; NULL: nobody is ever connected
    struct router *router;                 // whose members are the worker processes that take calls; NULL: none ever do
    const struct replica_reports *reports; // what other replicas see; NULL: there are none
    const struct territory *territory;     // namespaces that are left alone; NULL: there are none
    struct recorder *recorder;
    struct metrics *metrics;
    const struct clock *clock;
    uint64_t seed;
};

// Follows the stores from now on; decides nothing before group_controller_start() (caches synced, leading).
struct group_controller *group_controller_new(struct loop *loop, const struct group_controller_options *options);
// What pods with an agent are made with from now on, copied. Before the first one they are not made.
void group_controller_setup(struct group_controller *c, const struct agent_setup *setup);
// What the controller of PlacementGroups has in common with this one: the room that both plan with, who waits for it,
// what was tried, and the time of decisions. Borrowed.
struct controller_shared *group_controller_shared(struct group_controller *c);
// What agents say of this group, or who takes its calls, has changed: decides again in a moment, once for all that
// changes until then. From anywhere, also out of a callback of the agents or the router.
void group_controller_changed(struct group_controller *c, const char *ns, const char *name);
// The same of the agent of a pod that this PlacementGroup has, for the group with this UID, or for all that run on it
// (NULL). What it runs of others is stopped.
void group_controller_changed_shared(struct group_controller *c, const char *ns, const char *placementgroup,
                                     const char *group_uid);
// Whether the WorkerGroup with this UID (NULL: any) runs on the PlacementGroup; and the pod that has a rank of one that
// runs on some, NULL if it is not known.
bool group_controller_shares(const struct group_controller *c, const char *ns, const char *placementgroup,
                             const char *group_uid);
const struct pod *group_controller_place(const struct group_controller *c, const struct workergroup *wg, int32_t rank,
                                         struct arena *a);
void group_controller_start(struct group_controller *c); // may follow a stop
void group_controller_stop(struct group_controller *c);  // begins nothing new
// The API server is back: groups whose writes failed come at once, and nodes get time to report to it.
void group_controller_retry(struct group_controller *c);
void group_controller_look(struct group_controller *c); // all groups come: what the territory says has changed
bool group_controller_idle(const struct group_controller *c);
// Only when idle, or after the client is gone (which ends what is in flight); the stores must not change any more.
void group_controller_free(struct group_controller *c);
