// SPDX-License-Identifier: Apache-2.0
// The agent's websocket to one replica of the operator. It sends HELLO, takes commands, sends reports and heartbeats,
// and reconnects with jitter. A lost connection changes nothing in the pod.
#pragma once

#include "common/base/loop.h"
#include "common/base/rand.h"
#include "common/wire/record.h"
#include "common/ws/ws_tls.h"
#include "worker/agent/probe.h"

enum {
    // The longest pause before the next attempt. A random part of up to two thirds is subtracted. After a long absence,
    // an operator has all its agents back within a few seconds. While it is away, 10,000 agents send 5,000 packets a
    // second to a place where nobody listens: they are refused or dropped. When the operator returns, it does one TLS
    // handshake for each agent, with any pause.
    AGENT_CONNECTION_RETRY_FIRST_MS = 500,
    AGENT_CONNECTION_RETRY_MAX_MS = 3000,
    AGENT_CONNECTION_REFUSED_MAX_MS = 10 * 1000, // if the operator refuses the token: each attempt costs it a review
    AGENT_CONNECTION_AGAIN_MS = 250,             // the first pause if the replica does not know the pod yet; it doubles
};

struct agent_connection;

struct agent_connection_config {
    struct loop *loop;
    struct agent *agent;
    const struct probe *gpus; // NULL = the GPUs are not watched
    struct ws_tls *tls;       // NULL = none
    const char *server_name;  // for TLS
    const char *token_file;   // read again for each attempt, because it rotates; NULL = no token
    struct rand *rand;        // for the jitter
    void (*lost)(void *ctx);  // the connection was up and is lost; it tries again
    void *lost_ctx;
};

struct agent_connection *agent_connection_new(const struct agent_connection_config *c, const char *address);
void agent_connection_free(struct agent_connection *c); // at once; accepts NULL
// The pod ends. Tells the operator so at once, and again after each WELCOME. From now on, the exit of a process is not
// a failure.
void agent_connection_goodbye(struct agent_connection *c);
// Says goodbye, and closes the connection in good order. It does not reconnect. agent_connection_open() tells when it
// is closed.
void agent_connection_close(struct agent_connection *c);
bool agent_connection_open(const struct agent_connection *c);
bool agent_connection_up(const struct agent_connection *c); // the operator has said WELCOME
void agent_connection_printed(struct agent_connection *c, const char *group, int rank, const char *text, size_t len);
// Does nothing before HELLO, because HELLO contains the report.
void agent_connection_report(struct agent_connection *c, const struct agent_report *r);
// There is news about the GPUs that should not wait for the next heartbeat.
void agent_connection_gpus(struct agent_connection *c);
