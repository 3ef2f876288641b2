// SPDX-License-Identifier: Apache-2.0
// A connection that libwebsockets took over from us. It counts as a stranger until its first request.
#pragma once

#include "common/ws/ws_server_state.h"

// The socket is libwebsockets' to close from here on. `refused`: the path of its request is not taken.
void ws_connection_adopt(struct ws_listener *l, int fd, bool refused);
void ws_connection_known(struct ws_connection *c); // it has a request, or has ended
