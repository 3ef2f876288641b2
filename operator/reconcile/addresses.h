// SPDX-License-Identifier: Apache-2.0
// The names of a group's pods: EndpointSlices for its Service, which has no selector. Kubernetes' controllers would
// write endpoints again for nearly every pod that comes up; here a slice is written when all of its pods have
// addresses. Some of them are published before that only if the others take their time.
#pragma once

#include "operator/reconcile/work.h"

void addresses_publish(struct work *w); // host names lead to the pods that there are
