// SPDX-License-Identifier: Apache-2.0
// A websocket client on the loop: name lookup, connection, TLS, handshake, keepalive, and queues with flow control in
// both directions. All callbacks come from the loop, never inside a call, and never after ws_client_free(). Every
// callback may call ws_client_free(). One thread.
#pragma once

#include "common/base/loop.h"
#include "common/ws/ws_client_config.h"
#include "common/ws/ws_queue.h"

struct ws_client;

// ERR_INVALID and NULL for a configuration that cannot work. Later errors come by on_close.
struct ws_client *ws_client_new(struct loop *loop, const struct ws_client_config *config, struct err *err);
void ws_client_free(struct ws_client *c); // at once; the peer is not told; accepts NULL

// May be called before on_open. ERR_LIMIT if more than max_queue would wait; ERR_GONE after a close. Queued data goes
// out in the next turn, but short records go out at once when about a WS_WAVE of them is queued. No callback comes
// before the turn.
int ws_client_record(struct ws_client *c, const struct record_header *h, const struct record_part *parts, size_t n,
                     struct err *err);
int ws_client_record_copy(struct ws_client *c, const struct record_header *h, const void *body, size_t len,
                          struct err *err);
int ws_client_message(struct ws_client *c, bool text, const void *data, size_t len, struct err *err);
// The queue of records itself, to hold or drop records there. Records in it go out in the next turn.
struct record_writer *ws_client_records(struct ws_client *c);
// Sends now what the next turn would send first, so that the caller can wait at once. Callbacks come as in a turn.
void ws_client_flush(struct ws_client *c);
// For a blob that is no longer in the queue: copies a part of it that is half out, so that nothing refers to it any
// more.
void ws_client_own(struct ws_client *c, const struct blob *b);
bool ws_client_open(const struct ws_client *c);  // neither side has closed it
bool ws_client_ended(const struct ws_client *c); // by the peer, as a turn would find out
// For messages, after the address: " (1.2.3.4:80)" if the address is a name and there is, or was, a connection;
// otherwise "".
const char *ws_client_at(const struct ws_client *c);
// After on_open: other connections first try the other addresses of the host, as they do after a connection was lost.
void ws_client_avoid(struct ws_client *c);
pid_t ws_client_peer(const struct ws_client *c); // the process at the other end of a Unix socket, otherwise 0
size_t ws_client_queued(const struct ws_client *c);

// Sends queued data, then a close frame. No more on_data or on_message. on_close follows after at most 5 s.
void ws_client_close(struct ws_client *c, unsigned code, const char *reason);
void ws_client_pause(struct ws_client *c); // no on_data, on_message until resumed; stops reading
void ws_client_resume(struct ws_client *c);
