// SPDX-License-Identifier: Apache-2.0
// Reads the frames of open sessions, past libwebsockets (docs/adr/0008).
#pragma once

#include "common/ws/ws_server_state.h"

int ws_receivers_new(struct ws_server *server, struct err *err);
void ws_receivers_free(struct ws_server *server);
void ws_receivers_begin(struct ws_server *server);   // before each turn
void ws_receiver_new(struct ws_session *s);          // of an open one; nothing is read before the next turn
bool ws_receiver_failed(const struct ws_session *s); // what came was not a frame: nothing more is understood
void ws_receiver_free(struct ws_session *s);
void ws_receiver_watch(struct ws_session *s); // after a change of `paused`
