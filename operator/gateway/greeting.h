// SPDX-License-Identifier: Apache-2.0
// Finds out who a websocket connection is: the checks of the upgrade, and HELLO, which names the role.
#pragma once

#include "operator/gateway/connection.h"

int greeting_upgrade(struct gateway *g, struct ws_session *ws, struct ws_request *r, struct err *err);
void greeting_open(struct connection *c);
