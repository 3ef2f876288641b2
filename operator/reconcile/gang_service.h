// SPDX-License-Identifier: Apache-2.0
// The Service of a gang, which gives its pods their names.
#pragma once

#include "operator/reconcile/gang.h"

// Adds its creation to the plan, if the owner wants a Service and there is none.
void gang_service_add(struct gang_decision *g, int stage);
// Returns true if a Service of another owner has the name. Accepted then says so, and the plan looks again later.
bool gang_service_taken(struct gang_decision *g);
// Call this if the gang has its pods. If the Service has gone, it is created again.
void gang_service_keep(struct gang_decision *g);
