// SPDX-License-Identifier: Apache-2.0
// A configuration of a client as the client keeps it.
#pragma once

#include "common/ws/ws_client.h"

// With strings of its own, and what is not said filled in.
struct ws_client_config ws_client_config_copy(const struct ws_client_config *config);
// Writes what opens the connection, with a key of its own.
int ws_client_config_request(const struct ws_client_config *config, const char *host, char key[HANDSHAKE_KEY_SIZE],
                             struct buf *out, struct err *err);
void ws_client_config_done(struct ws_client_config *config);
