// SPDX-License-Identifier: Apache-2.0
// The sockets on which a server listens.
#pragma once

#include "common/ws/ws_server_state.h"

int ws_listener_new(struct ws_server *server, const char *address, bool tls, struct err *err); // ws_server_listen()
void ws_listeners_stop(struct ws_server *server);
void ws_listener_free(struct ws_listener *l);
