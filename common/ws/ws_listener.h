// SPDX-License-Identifier: Apache-2.0
// Where a server listens.
#pragma once

#include "common/ws/ws_server_state.h"

void ws_listener_free(struct ws_listener *l);
