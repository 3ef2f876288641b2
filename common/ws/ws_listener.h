// SPDX-License-Identifier: Apache-2.0
// Where a server listens.
#ifndef CADRE_WS_WS_LISTENER_H
#define CADRE_WS_WS_LISTENER_H

#include "common/ws/ws_server_state.h"

void ws_listener_free(struct ws_listener *l);

#endif
