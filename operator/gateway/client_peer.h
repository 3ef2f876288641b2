// SPDX-License-Identifier: Apache-2.0
// A client on a websocket. When its token is checked, it becomes a session of the router. A client that speaks cadre.v1
// sends HELLO and gets WELCOME. With cadre.v1.json, calls begin at once.
#pragma once

#include "operator/gateway/connection.h"

// If there is a token, it asks the authority now.
int client_upgrade(struct connection *c, const char *token, struct err *err);
void client_open(struct connection *c);
int client_hello(struct connection *c, const struct hello *h, struct err *err);
