// SPDX-License-Identifier: Apache-2.0
// The host names of a group's pods: EndpointSlices for its Service, which has no selector. With a selector, Kubernetes'
// controllers would write endpoints again for nearly every pod that starts. Here a slice is written once, when all of
// its pods have addresses. Some addresses are published earlier only if other pods are slow.
#pragma once

#include "operator/reconcile/group_decision.h"

void addresses_publish(struct group_decision *d); // the host names lead to the pods that exist
