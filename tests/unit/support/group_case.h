// SPDX-License-Identifier: Apache-2.0
// A WorkerGroup or PlacementGroup and what surrounds it, from JSON as the API server writes it. Usual members are left
// out: {"like": "pod 0 n1"}, and what is special about it (likeness.h):
//
//   {"now": TIME, "waitingStatuses": N, "workergroup": {...}, "pods": [...], "nodes": [...], "service": {...},
//    "slices": [{...}] of a Service without a selector; where there is no such member it has one,
//    "memory": {"dryRun": "OK" | "Refused" | "Forbidden" | "ForbiddenBefore" (of another spec), "message": ...,
//               "refusal": {"reason", "message", "incarnation"},
//               "retryAt": TIME, "givenBack": N, "contended": [...], "statusWantedAt": TIME,
//               "master": ..., "addressesWantedAt": TIME},
//    "agents": {POD: {"connected", "changedAt", "endingAt", "state", "attempt", "sent", "sentAttempt", "error",
//                     "errorAt", "takenPort", "lost": {"uuid", "name", "xid", "rank"},
//                     "processes": [{"rank", "attempt", "state", "exitCode", "signal", "outOfMemory", "message",
//                                    "lastLines", "endedAt"}]}},
//    "placementgroups": [{...}], "otherUsers": [{"name", "master"}], of a WorkerGroup on their bundles,
//    "members": [attempt of rank 0, ...], "leadingSince": TIME, "noSetup": true}
//
// Only workergroup is required, or placementgroup in its place. Pods of other owners take room, but do not belong to
// the group. From the agents of a PlacementGroup's pods, only lost GPUs count. The text @spec-hash@ stands for the hash
// of the fields of the present spec that the group's pods are made from (@worker-hash@: that its processes are made
// from). memory.dryRun is about the same hash, and the dry run has answered with the rendered pod itself. In a
// PlacementGroup's pods, @spec-hash@ is the hash of the template, and @shape-N@ is its N-th shape of bundles.
#pragma once

#include "operator/reconcile/group_reconcile.h"
#include "operator/reconcile/placementgroup_reconcile.h"

enum { GROUP_CASE_PODS = 64, GROUP_CASE_PLACEMENTGROUPS = 4, GROUP_CASE_SLICES = 4 };

struct group_case {
    struct arena arena;
    const struct json *given; // the object itself, as the input has it
    struct group_view view;   // view.wg NULL: of a PlacementGroup
    struct gang_memory memory;
    struct cluster *cluster;
    const struct object *owner, *service, *pods[GROUP_CASE_PODS], *placementgroups[GROUP_CASE_PLACEMENTGROUPS];
    const struct object *slices[GROUP_CASE_SLICES];
    const struct endpointslice *slice_views[GROUP_CASE_SLICES];
    size_t n_placementgroups;
    bool used; // of a PlacementGroup
    const struct pod *pod_views[GROUP_CASE_PODS];
    struct agent_facts agents[GROUP_CASE_PODS];
    bool gpu_lost[GROUP_CASE_PODS];
    int32_t members[GROUP_CASE_PODS];
    struct plan plan;
};

struct group_case *group_case_new(const char *json); // what it cannot read fails the test
void group_case_free(struct group_case *c);
// The present decision; valid until the next one of the case.
const struct plan *group_case_decide(struct group_case *c);

// The setup with which pods under an agent are made here. A ticket reads "ticket-ATTEMPT-RANK".
extern const struct agent_setup group_case_setup;

// The hash of what the pods of this group are made from, 0 if it cannot be run.
uint64_t group_case_hash(const struct workergroup *wg);
