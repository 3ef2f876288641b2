// SPDX-License-Identifier: Apache-2.0
// Who a websocket connection is: the checks of the upgrade, and HELLO, which says the role.
#ifndef CADRE_GATEWAY_GREETING_H
#define CADRE_GATEWAY_GREETING_H

#include "operator/gateway/connection.h"

int greeting_upgrade(struct gateway *g, struct ws_session *ws, struct ws_request *r, struct err *err);
void greeting_open(struct connection *c);

#endif
