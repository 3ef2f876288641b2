// SPDX-License-Identifier: Apache-2.0
// The connection of an agent. The pod's token is checked at the upgrade, and the pod is looked up at HELLO. Then the
// registry gets it.
#pragma once

#include "operator/gateway/connection.h"

int agent_upgrade(struct connection *c, struct err *err);
int agent_greet(struct connection *c, const struct record *rec, struct err *err);
void agent_close_replaced(struct gateway *g); // whose place another connection has taken, or whose pod has gone
