// SPDX-License-Identifier: Apache-2.0
// A client on a websocket: its token is checked, then it is a session of the router. With cadre.v1 it says HELLO
// and gets WELCOME; cadre.v1.json begins at once.
#pragma once

#include "operator/gateway/connection.h"

int client_upgrade(struct connection *c, struct err *err); // with a token: asks at once
void client_open(struct connection *c);
int client_greet(struct connection *c, const struct hello *h, struct err *err);
