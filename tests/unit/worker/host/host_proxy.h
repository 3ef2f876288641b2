// SPDX-License-Identifier: Apache-2.0
// A proxy for tests of cadre-worker. It serves one worker at a time, on its own Unix socket or on loopback, and writes
// down what the worker sends.
#pragma once

#include "common/base/buf.h"
#include "common/wire/record_reader.h"
#include "common/wire/share.h"
#include "common/ws/ws_server.h"
#include "tests/unit/support/patience.h"

#include <stdbool.h>

struct host_proxy {
    uint8_t flags; // of the following CALLs
    struct loop *loop;
    char address[64];               // where it listens: a Unix socket, or "127.0.0.1:0"
    int port;                       // the port that the system has chosen
    const char *cert_pem, *key_pem; // NULL = no TLS
    char path[64];                  // of the last upgrade
    struct ws_server *server;
    struct ws_session *peer; // NULL while no worker is connected
    struct record_reader reader;
    struct buf trace;    // a line for each record: type, call id, the first 1000 bytes of the body
    const char *welcome; // body of the answer to HELLO; NULL = none is sent
    int n_hello;
    bool shares; // shares memory with a worker of this process
    struct share share;
    int n_areas;        // number of areas that workers have offered
    uint32_t last_area; // its number
};

void host_proxy_init(struct host_proxy *p, struct loop *loop);
void host_proxy_done(struct host_proxy *p);
void host_proxy_start(struct host_proxy *p); // begins to listen
void host_proxy_stop(struct host_proxy *p);  // and closes all connections

void host_proxy_send(struct host_proxy *p, enum record_type type, uint32_t call, const char *body);
void host_proxy_call(struct host_proxy *p, uint32_t id, const char *head, const char *args);
bool host_proxy_came(const struct host_proxy *p, const char *text); // the trace contains this text

#define HOST_UNTIL(p, condition) TURN_UNTIL(loop_run_once((p)->loop, 10), condition, buf_str(&(p)->trace))
