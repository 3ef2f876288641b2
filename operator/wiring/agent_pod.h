// SPDX-License-Identifier: Apache-2.0
// Finds the pod of an agent in the mirrors: which group the agent belongs to, and whether it may connect.
#pragma once

#include "operator/agents/agents.h"
#include "operator/gateway/authority.h"
#include "operator/runtime/store.h"

// The strings of the identity are borrowed from the stores. ERR_UNAVAILABLE: the pod or its WorkerGroup is not known
// yet. ERR_CONFLICT: the pod was replaced, or has ended. ERR_FORBIDDEN: it belongs to no WorkerGroup or PlacementGroup
// of cadre.dev. Somebody who may create pods can write any UID into them, also the UID of a group in another namespace.
int agent_pod_find(const struct store *pods, const struct store *groups, const struct pod_claims *claims,
                   struct agent_identity *ret, int64_t *ret_heartbeat_ms, struct err *err);
