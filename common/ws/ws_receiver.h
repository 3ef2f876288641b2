// SPDX-License-Identifier: Apache-2.0
// Reads the frames of open sessions, past libwebsockets (docs/adr/0008), so that one reader keeps the rules of RFC
// 6455, the limits and the fairness with and without TLS. Speed is not the reason: over TLS, one call at a time is 1.1x
// as fast, and many calls or long bodies gain nothing (docs/benchmarks/tricks.md).
#pragma once

#include "common/ws/ws_server_state.h"

struct ws_receiver_events { // the events of a session, in the order in which the peer sent the data; `s` is still there
    void (*data)(struct ws_session *s, bool text, const char *data, size_t len, bool end); // a piece of a message
    void (*ping)(struct ws_session *s, const char *data, size_t len);
    void (*closed)(struct ws_session *s, unsigned code, const char *reason, size_t len); // the peer's close frame
    void (*refused)(struct ws_session *s, unsigned code, const char *reason);            // the data was not a frame
    void (*ended)(struct ws_session *s); // nothing is left to read, or it cannot be read
};

// For an open session; nothing is read before the next turn. `on` must outlive it.
void ws_receiver_new(struct ws_session *s, const struct ws_receiver_events *on);
bool ws_receiver_failed(const struct ws_session *s); // the data was not a frame: nothing more is understood
void ws_receiver_stop(struct ws_session *s);         // libwebsockets reads again, to end it
void ws_receiver_free(struct ws_session *s);
// Sets its owner from now on (ws_fair_queue.h). Before, the owner is "", as for all peers that are not known yet.
void ws_receiver_owner(struct ws_session *s, const char *name, unsigned weight);
void ws_receiver_watch(struct ws_session *s); // after a change of `paused`
