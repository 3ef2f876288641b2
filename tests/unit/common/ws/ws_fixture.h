// SPDX-License-Identifier: Apache-2.0
// A server on a loop and clients that write down what happens to them.
#pragma once

#include "common/base/buf.h"
#include "common/ws/ws_client.h"
#include "common/ws/ws_server.h"
#include "tests/fakeapi/certs.h"
#include "tests/unit/support/patience.h"

// The server answers each message with itself, and notes everything in a line of `trace`.
struct ws_fixture {
    struct loop *loop;
    struct ws_server *server;
    int port;
    char address[64];
    struct buf trace;
    struct ws_session *session; // the last one that opened, NULL when it closed
    struct ws_request *request; // held back, where hold_requests is set
    bool hold_requests, quiet;  // quiet: do not echo
    int refuse_status;          // of the next upgrades; 0 = accept
    int drained;
    size_t unsent; // bytes in the queue of the last session that closed
};

void ws_fixture_start(struct ws_fixture *f, const struct ws_server_config *config); // callbacks are its own
void ws_fixture_stop(struct ws_fixture *f);
void ws_fixture_listen(struct ws_fixture *f, const char *address, bool tls); // sets f->address

struct ws_peer {
    struct ws_fixture *f;
    struct ws_client *client;
    struct buf got; // messages, each with a | behind
    char protocol[HANDSHAKE_PROTOCOL_SIZE];
    bool opened, closed;
    unsigned code;
    char reason[FRAME_REASON_MAX + 1];
    struct err err;
    int drained;
    int free_in; // frees the client in this callback: 1 on_open, 2 on_data, 3 on_message, 4 on_close
    bool pieces; // binary by on_data
};

// Connects to f->address; config may be NULL, its callbacks are the peer's.
void ws_peer_start(struct ws_peer *p, struct ws_fixture *f, const struct ws_client_config *config);
void ws_peer_stop(struct ws_peer *p);
void ws_peer_send(struct ws_peer *p, const char *text);

#define WS_UNTIL(f, condition) TURN_UNTIL(loop_run_once((f)->loop, 100), condition, buf_str(&(f)->trace))
