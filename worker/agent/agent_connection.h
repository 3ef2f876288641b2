// SPDX-License-Identifier: Apache-2.0
// The agent's websocket to one replica of the operator: sends HELLO, takes commands, reports, sends heartbeats, and
// reconnects with jitter. A lost connection changes nothing in the pod.
#pragma once

#include "common/base/loop.h"
#include "common/base/rand.h"
#include "common/wire/record.h"
#include "common/ws/ws_tls.h"
#include "worker/agent/probe.h"

enum {
    // Before the next attempt, less up to two thirds at random. An operator that was away for long has all its agents
    // back within a few seconds. 10,000 agents then send 5,000 packets a second to where nobody listens, which refuses
    // them or drops them; an operator that has come back has a TLS handshake of each to do, at any pause.
    CONNECTION_RETRY_FIRST_MS = 500,
    CONNECTION_RETRY_MAX_MS = 3000,
    CONNECTION_REFUSED_MAX_MS = 10 * 1000, // by an operator that does not take the token, which costs it a review
    CONNECTION_AGAIN_MS = 250,             // first, after a replica that does not know the pod yet; doubles
};

struct connection;

struct connection_config {
    struct loop *loop;
    struct agent *agent;
    const struct probe *gpus; // NULL = nobody watches them
    struct ws_tls *tls;       // NULL = none
    const char *server_name;  // for TLS
    const char *token_file;   // read again for each attempt, because it rotates; NULL = no token
    struct rand *rand;        // for the jitter
    void (*lost)(void *ctx);  // after it was up; it tries again
    void *lost_ctx;
};

struct connection *connection_new(const struct connection_config *c, const char *address);
void connection_free(struct connection *c); // at once; accepts NULL
// The pod ends: says so at once, and again after each WELCOME. What its processes exit with from now on is no failure.
void connection_goodbye(struct connection *c);
// Says goodbye and closes in good order, for ever; connection_open() tells when it has.
void connection_close(struct connection *c);
bool connection_open(const struct connection *c);
bool connection_up(const struct connection *c); // the operator has said WELCOME
void connection_printed(struct connection *c, const char *group, int rank, const char *text, size_t len);
void connection_report(struct connection *c, const struct agent_report *r); // dropped before the HELLO, which has it

void connection_gpus(struct connection *c); // there is news of them that should not wait for the next heartbeat
