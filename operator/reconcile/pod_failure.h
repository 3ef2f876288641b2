// SPDX-License-Identifier: Apache-2.0
// How a pod has failed, as its containers show it. Pure.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/workergroup.h"

// When the pod ended. If that is not known, or lies in the future, now_ms.
int64_t pod_failure_ms(const struct pod *p, int64_t now_ms);
// When the first of several containers ended that the kubelet may have killed; 0 = there is none. The kubelet gives the
// reason later.
int64_t pod_failure_killed_ms(const struct pod *p);
// Returns true if one of several containers has failed. The others keep the pod running, so nobody else would notice. A
// container that the kubelet may have killed counts only if killed_left_ms is 0 or less, otherwise *ret_ms is set to
// that time.
bool pod_failure_of_sidecar(const struct pod *p, int64_t killed_left_ms, int64_t *ret_ms);
// The failure for the status, without its rank. lost: the node of the pod is lost. deleted: somebody else deleted it.
// The strings belong to the pod or the arena.
struct group_failure pod_failure_describe(const struct pod *p, bool lost, bool deleted, int64_t now_ms,
                                          struct arena *a);
