// SPDX-License-Identifier: Apache-2.0
// The connection of an agent. The gateway checks the pod's token once, at the upgrade, and looks up the pod at HELLO.
// Then it passes the connection to the registry of agents.
#pragma once

#include "operator/gateway/connection.h"

// `token` is NULL for a worker process.
int agent_upgrade(struct connection *c, const char *token, struct err *err);
int agent_hello(struct connection *c, const struct record *rec, struct err *err);
// Closes connections that a newer one has replaced, and connections of pods that are gone.
void agent_close_replaced(struct gateway *g);
