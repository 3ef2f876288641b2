// SPDX-License-Identifier: Apache-2.0
// A WorkerGroup on bundles of PlacementGroups: the bundle of each replica, the pod of that bundle, and the reason why
// the group has to wait. Pure.
//
// Each replica has one bundle. Ranks follow the order of spec.placement.groups. One agent serves all replicas whose
// bundles are in its pod, and gets their processes in one command.
#pragma once

#include "operator/reconcile/accept.h"
#include "operator/reconcile/group_view.h"

struct replica_bundle {    // the bundle of one replica
    const struct pod *pod; // the pod with the bundle; NULL = no pod that counts
    size_t at;             // index of the pod in the view
    size_t placementgroup; // index in spec.placement.groups
    int32_t bundle;        // index in that PlacementGroup; -1 = not known
    int32_t gpu, gpus;     // the bundle's first GPU in the pod, and how many it has: nvidia.com/gpu
    bool uncounted; // neither the bundle nor its pod has nvidia.com/gpu, but they may have other or claimed devices
    int32_t next;   // the next replica in the same pod, -1 = none
    int32_t first, before; // the lowest replica in the pod; how many replicas come before this one there
    int32_t node;          // number of the pod among the group's pods, in the order of their lowest replicas
    int32_t pod_replicas;  // replicas of the group in the pod
};

struct group_bundles {
    struct replica_bundle *replicas; // by replica
    int32_t nodes;                   // pods
    int32_t gpus;                    // of all bundles
    const char *master_host;         // NULL = not known
    int32_t master_port;             // 0 = not known
    const struct pod **stale;        // pods of the PlacementGroups with processes of the group that do not belong there
    size_t n_stale;
    struct refusal refusal;  // reason NULL: none
    const char *wait_reason; // NULL: every replica has its pod, or had it when the group was bound
    const char *wait_message;
    bool waits_for_port; // another group has the port
};

// Returns true if the bundles are not available at present. Processes of the group may still run elsewhere.
bool group_bundles_wait(const struct group_bundles *p);

// `bound`: the status says that every replica has its pod. Then a lost pod still counts until its loss is answered.
void group_bundles_take(const struct group_view *v, bool bound, struct arena *a, struct group_bundles *ret);

// Returns true if nobody can say which devices of the pod belong to the workers of this replica. The workers then see
// all devices of the pod.
bool group_bundles_uncounted(const struct workergroup *wg, const struct replica_bundle *b);
// The GPUs of the pod that belong to one worker: worker `local` of its replica. Returns their number.
size_t group_bundles_gpus(const struct workergroup *wg, const struct replica_bundle *b, int32_t local, struct arena *a,
                          int **ret);

// placement.nodeLostSeconds for this pod of the group. For a pod of a PlacementGroup, it comes from there.
int32_t group_bundles_node_lost_s(const struct group_view *v, const struct pod *p);

// The grace period of its pods.
int64_t group_bundles_grace_s(const struct group_view *v);
int64_t group_bundles_template_grace_s(
    const struct placementgroup *plg); // of one PlacementGroup; NULL: the default of Kubernetes

// The pod of a rank as far as it is known; NULL = none.
const struct pod *group_bundles_pod(const struct group_view *v, int32_t rank, struct arena *a);
