// SPDX-License-Identifier: Apache-2.0
// Computes the resources that a pod takes from its node, as kube-scheduler counts them (component-helpers/resource
// PodRequests of 1.36; KEP-753 for sidecars, KEP-2837 for pod-level resources, KEP-1287 for resize in place):
//
//   container         requests; if the kubelet reports allocated and actual resources, the largest of the three, or of
//                     these two if the resize is infeasible
//   init container    its requests + the requests of all sidecars before it; the pod needs the largest
//   sidecar           (init container, restartPolicy Always) counts as a container and as an init container
//   pod               max(sum of containers and sidecars, largest init container), per resource;
//                     spec.resources.requests replaces cpu, memory and hugepages; + overhead; 1 pod
#pragma once

#include "common/base/json.h"
#include "operator/api/resource.h"

// `root` is the pod. *ret is in the arena.
int pod_requests_decode(const struct json *root, struct arena *a, struct resources *ret, struct err *err);
