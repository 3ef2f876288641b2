// SPDX-License-Identifier: Apache-2.0
// The creation of the missing pods of a gang, all or none.
//
// The checks run in the order in which a person wants to know about them: dry runs, the name of the Service, backoff,
// room. If all of them pass, the plan creates the pods. If the API server refuses one of them, the gang is given back.
#pragma once

#include "operator/reconcile/gang.h"

// Call this if some pods are missing.
void gang_create(struct gang_decision *g);
