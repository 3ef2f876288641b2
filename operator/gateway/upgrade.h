// SPDX-License-Identifier: Apache-2.0
// Finds out who a websocket connection is. It checks the upgrade, and reads HELLO, which names the role.
#pragma once

#include "operator/gateway/connection.h"

// The callbacks of ws_server_config.
int upgrade_accept(void *gateway, struct ws_session *ws, struct ws_request *r, struct err *err);
void upgrade_open(void *gateway, struct ws_session *ws);
