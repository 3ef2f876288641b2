// SPDX-License-Identifier: Apache-2.0
// A session: a websocket connection of a server, from on_upgrade to on_close.
#pragma once

#include "common/wire/record_writer.h"

#include <sys/types.h>

struct ws_server;
struct ws_session;
struct ws_connection;

void *ws_session_user(const struct ws_session *s);
void ws_session_set_user(struct ws_session *s, void *user);
const char *ws_session_subprotocol(const struct ws_session *s); // NULL before on_open
pid_t ws_session_peer(const struct ws_session *s); // the process at the other end of a Unix socket, otherwise 0
// For memory that its peer makes this process hold: record readers, blobs.
struct quota *ws_session_quota(struct ws_session *s);
int ws_session_record_copy(struct ws_session *s, const struct record_header *h, const void *body, size_t len,
                           struct err *err);
int ws_session_parts(struct ws_session *s, bool text, struct parts *parts, struct err *err); // ws_queue_parts()
// From now on, this quota pays for waiting messages, in addition to max_queue, and for messages that have come in part.
void ws_session_charge(struct ws_session *s, struct quota *quota);
// Sets the owner of an open session. Owners are read in turns, by weight, however many sessions each has. Before, the
// owner is "".
void ws_session_owner(struct ws_session *s, const char *name, unsigned weight);
size_t ws_session_queued(const struct ws_session *s);
// The queue of records itself, until on_close, for owners that fill it themselves; ws_session_wake() sends it.
struct record_writer *ws_session_records(struct ws_session *s);
void ws_session_wake(struct ws_session *s);

// Sends queued data, then a close frame. No more on_data or on_message. on_close follows within about 10 s.
void ws_session_close(struct ws_session *s, unsigned code, const char *reason);
// The work for these bytes, which were just read, takes at least as long as for `least` bytes.
void ws_session_worked(struct ws_session *s, size_t bytes, size_t least);
// Stops reading. Data that was read already, up to read_size, may still come.
void ws_session_pause(struct ws_session *s);
void ws_session_resume(struct ws_session *s);

// For ws_server.c: the events of libwebsockets. Non-zero closes the connection.
struct ws_session *ws_session_new(struct ws_connection *c);
int ws_session_established(struct ws_session *s);
void ws_session_glued(struct ws_session *s);
int ws_session_writable(struct ws_session *s);
int ws_session_peer_closes(struct ws_session *s, const unsigned char *payload, size_t len);
void ws_sessions_show_life(struct ws_server *server);
void ws_session_end(struct ws_session *s);        // tells the owner, frees
bool ws_session_idle(const struct ws_session *s); // nothing waits to be sent, and nobody waits for the peer
void ws_session_sweep(struct ws_session *s);
