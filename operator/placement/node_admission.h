// SPDX-License-Identifier: Apache-2.0
// Decides whether a pod may run on a node at all, regardless of the other pods there. These are the predicates of
// kube-scheduler's filters, with two exceptions: a cordoned node and a node that is not Ready take nothing new,
// whatever the pod tolerates.
#pragma once

#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/pod_constraints.h"

#define TOPOLOGY_HOSTNAME "kubernetes.io/hostname"

// The domain of a node: its own name for TOPOLOGY_HOSTNAME, otherwise the value of this label; NULL if it has none.
// Borrowed.
const char *node_domain(const struct node *n, const char *topology_key);

// The first cause that applies, in this order: the requests of the gang come before the state of the node.
enum node_verdict {
    NODE_OK,
    NODE_UNMATCHED, // nodeSelector or required affinity
    NODE_NO_DOMAIN, // lacks the topology key
    NODE_TOO_SMALL, // allocatable is less than the request
    NODE_NOT_READY,
    NODE_CORDONED,
    NODE_TAINTED, // a NoSchedule or NoExecute taint that is not tolerated
};
enum node_verdict node_admits(const struct node *n, const struct pod_constraints *p, const char *topology_key);
