// SPDX-License-Identifier: Apache-2.0
// A configuration of a client as the client keeps it.
#ifndef CADRE_WS_WS_CLIENT_CONFIG_H
#define CADRE_WS_WS_CLIENT_CONFIG_H

#include "common/ws/ws_client.h"

// With strings of its own, and what is not said filled in.
struct ws_client_config ws_client_config_copy(const struct ws_client_config *config);
void ws_client_config_done(struct ws_client_config *config);

#endif
