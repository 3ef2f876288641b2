// SPDX-License-Identifier: Apache-2.0
// A gang whose pods all exist. If they are not all bound in time, the gang is given back.
#pragma once

#include "operator/reconcile/gang.h"

// Deletes superfluous pods, keeps the Service, and waits until kube-scheduler has bound all pods. Returns false if they
// are not all bound yet: the decision is then complete.
bool gang_whole(struct gang_decision *g);
// If a container is stuck, sets Ready to False with the cause and returns true.
bool gang_whole_stuck(struct gang_decision *g);
