// SPDX-License-Identifier: Apache-2.0
// What a pod takes from its node, as kube-scheduler counts it (component-helpers/resource PodRequests of 1.36; KEP-753
// for sidecars, KEP-2837 for pod-level resources, KEP-1287 for resize in place):
//
//   container         requests; once kubelet reports what is allocated or in effect, the largest of the three, or of
//                     those two alone where the resize is infeasible
//   init container    its requests + those of all sidecars before it; the pod needs the largest
//   sidecar           (init container, restartPolicy Always) counts as a container and as an init container
//   pod               max(sum of containers and sidecars, largest init container), per resource;
//                     cpu, memory and hugepages replaced by spec.resources.requests where given; + overhead; 1 pod
#pragma once

#include "common/base/json.h"
#include "operator/api/resource.h"

// `root` is the pod. In the arena.
int pod_requests_decode(const struct json *root, struct arena *a, struct resources *ret, struct err *err);
