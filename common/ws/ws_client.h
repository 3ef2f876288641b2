// SPDX-License-Identifier: Apache-2.0
// A websocket client on the loop: name lookup, connection, TLS, handshake, keepalive, and queues with flow control in
// both directions. All callbacks come from the loop, never inside a call, and never after ws_client_free(). Every
// callback may call ws_client_free(). One thread.
#pragma once

#include "common/base/loop.h"
#include "common/ws/ws_client_config.h"
#include "common/ws/ws_queue.h"

struct ws_client;

// ERR_INVALID and NULL for a configuration that cannot work; whatever goes wrong later comes by on_close.
struct ws_client *ws_client_new(struct loop *loop, const struct ws_client_config *config, struct err *err);
void ws_client_free(struct ws_client *c); // at once, without a word to the peer; accepts NULL

// May be called before on_open. ERR_LIMIT when max_queue would wait; ERR_GONE after a close. What is queued goes out in
// the next turn, but for short records: a WS_WAVE or so of them goes out at once. Nothing calls back before the turn.
int ws_client_record(struct ws_client *c, const struct record_header *h, const struct record_part *parts, size_t n,
                     struct err *err);
int ws_client_record_copy(struct ws_client *c, const struct record_header *h, const void *body, size_t len,
                          struct err *err);
int ws_client_message(struct ws_client *c, bool text, const void *data, size_t len, struct err *err);
// The queue of records itself, to hold or drop something there; what is in it goes out in the next turn.
struct record_writer *ws_client_records(struct ws_client *c);
// Sends now what the next turn would send first, which then can wait at once. Calls back as a turn does.
void ws_client_flush(struct ws_client *c);
// Of this blob nothing is in the queue any more: what is half out is copied, and nothing refers to it from now on.
void ws_client_own(struct ws_client *c, const struct blob *b);
bool ws_client_ended(const struct ws_client *c); // by the peer, as a turn would find out
// For messages, behind the address: " (1.2.3.4:80)", where it is a name and there is, or was, a connection; else "".
const char *ws_client_at(const struct ws_client *c);
// After on_open: other connections try the other addresses of the host first, as they do after one was lost.
void ws_client_avoid(struct ws_client *c);
pid_t ws_client_peer(const struct ws_client *c); // the process at the other end of a Unix socket, else 0
size_t ws_client_queued(const struct ws_client *c);

// Sends what is queued, then a close frame; no more on_data or on_message. on_close follows in any case, after at most
// 5 s.
void ws_client_close(struct ws_client *c, unsigned code, const char *reason);
void ws_client_pause(struct ws_client *c); // no on_data, on_message until resumed; stops reading
void ws_client_resume(struct ws_client *c);
