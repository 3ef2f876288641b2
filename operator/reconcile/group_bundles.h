// SPDX-License-Identifier: Apache-2.0
// A WorkerGroup on bundles of PlacementGroups: which bundle each replica has, in which pod that bundle is, and what the
// group has to wait for. Pure.
//
// A replica is a bundle: ranks follow spec.placement.groups. One agent serves all replicas whose bundles are in its
// pod, and gets their processes in one command.
#pragma once

#include "operator/reconcile/accept.h"
#include "operator/reconcile/group_view.h"

struct replica_bundle {    // of one replica
    const struct pod *pod; // that has its bundle; NULL = none that counts
    size_t at;             // of the pod in the view
    size_t placementgroup; // of spec.placement.groups
    int32_t bundle;        // of that PlacementGroup; -1 = not known
    int32_t gpu, gpus;     // the bundle's first GPU in the pod, and how many it has: nvidia.com/gpu
    bool uncounted;        // it has none of these, nor has its pod, but perhaps others, or claimed ones
    int32_t next;          // replica in the same pod, -1 = none
    int32_t first, before; // the lowest replica in the pod, and how many of the group's there are before this one
    int32_t node;          // the how many-th pod of the group it is, by its lowest replica
    int32_t pod_replicas;  // of the group in the pod
};

struct group_bundles {
    struct replica_bundle *replicas; // by replica
    int32_t nodes;                   // pods
    int32_t gpus;                    // of all bundles
    const char *master_host;         // NULL = not known
    int32_t master_port;             // 0 = not known
    const struct pod **stale; // pods of the PlacementGroups where processes of the group are that do not belong there
    size_t n_stale;
    struct refusal refusal;  // reason NULL: none
    const char *wait_reason; // NULL: every replica has its pod, or had it when the group was bound
    const char *wait_message;
    bool waits_for_port; // that another group has
};

// The bundles cannot be had at present, whatever of the group itself still runs elsewhere.
bool group_bundles_wait(const struct group_bundles *p);

// `bound`: the status says that every replica has its pod; then one that was lost counts until that was answered.
void group_bundles_take(const struct group_view *v, bool bound, struct arena *a, struct group_bundles *ret);

// Nobody can say which devices of the pod are the workers' of this replica: they keep what their pod has.
bool group_bundles_uncounted(const struct workergroup *wg, const struct replica_bundle *b);
// The GPUs of the pod that are one worker's: the `local`-th of its replica. Returns how many.
size_t group_bundles_gpus(const struct workergroup *wg, const struct replica_bundle *b, int32_t local, struct arena *a,
                          int **ret);

// What its pods have to end.
int64_t group_bundles_grace_s(const struct group_view *v);
int64_t group_bundles_template_grace_s(
    const struct placementgroup *plg); // of one; NULL: what Kubernetes gives by itself

// Which pod a rank is in, as far as it is known; NULL = in none.
const struct pod *group_bundles_pod(const struct group_view *v, int32_t rank, struct arena *a);
