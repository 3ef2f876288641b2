// SPDX-License-Identifier: Apache-2.0
// A connection that libwebsockets took over from us. Until its first request, it is in the list without_request.
#pragma once

#include "common/ws/ws_server_state.h"

// From here on, libwebsockets closes the socket. NULL: it has ended.
struct ws_connection *ws_connection_adopt(struct ws_listener *l, int fd, enum ws_stage stage);
void ws_connection_known(struct ws_connection *c);        // it has a request, or ends
void ws_connections_end_oldest(struct ws_server *server); // without a request; there must be one

// Ends it without a close frame, before the next turn or later: libwebsockets needs 50 us to close one.
void ws_connection_hang_up(struct ws_connection *c);
// Hangs up the next of these connections, and returns it; NULL = there is none. libwebsockets closes it in a later
// turn.
struct ws_connection *ws_connections_hang_up_next(struct ws_server *server);

size_t ws_connections_sweep_parts(
    const struct ws_server *server);                      // of a round over all connections; 0 = there are none
void ws_connections_sweep_next(struct ws_server *server); // arms the timer of the next part of a round
void ws_connections_busy(struct ws_server *server);       // something happens: the rounds go on
