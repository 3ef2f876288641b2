// SPDX-License-Identifier: Apache-2.0
// A gateway on loopback with one group, ml/llama, an authority that decides, and peers that write down what comes.
#pragma once

#include "common/base/buf.h"
#include "common/ws/ws_client.h"
#include "operator/gateway/gateway.h"
#include "tests/unit/support/patience.h"

#include <stdbool.h>

#define GATEWAY_UID "6e8a-llama"

// Tokens of clients: "alice" may call, "bob" may not, "short" may for a moment, "late" is answered when the test
// wants it, anything else belongs to nobody. Tokens of pods: "pod NAME UID".
struct gateway_fixture {
    struct loop *loop;
    struct authority authority;
    struct agents *agents;
    struct gateway *gateway;
    char address[128];
    int port;
    // The question that "late" has asked
    authority_done_fn late;
    void *late_ctx;
    int n_asked, n_canceled;
    int client_code; // what "alice" is answered instead, 0 = that she may
    int pod_code;    // what the look-up of pods answers
    int64_t heartbeat_ms;
    int64_t pod_expires_ms; // end of the tokens of pods, Unix time; 0 = none
    int n_pod_tokens;       // how often such a token was checked
    struct buf changes;     // what the registry of agents tells
    const char *trace_of;   // shown when something does not happen
};

// Limits may be NULL. address NULL = a port on 127.0.0.1.
void gateway_fixture_start(struct gateway_fixture *f, const struct gateway_config *limits, const char *address);
void gateway_fixture_stop(struct gateway_fixture *f);
void gateway_fixture_restart(struct gateway_fixture *f, const struct gateway_config *limits);
void gateway_fixture_group(struct gateway_fixture *f, uint32_t world, uint32_t attempt, const char *refusal);
void gateway_fixture_ticket(char out[256], const char *uid, uint32_t attempt, uint32_t rank, uint64_t serial);
struct gateway_counters gateway_fixture_counters(const struct gateway_fixture *f);

// A peer with records, or with texts.
struct gateway_peer {
    struct gateway_fixture *f;
    struct ws_client *client;
    struct record_reader reader;
    struct buf got; // a line for each record: type, call, rank (- = the group), body. A line for each text.
    size_t bytes;   // of all bodies
    bool opened, closed;
    unsigned code;
    char reason[128];
    struct err err;
    // A worker: answers its calls with their arguments and its rank, unless it is quiet
    bool worker, quiet;
    uint32_t rank;
    uint32_t last_call; // that it was given
    uint32_t n_calls;   // that it was given
    char ticket[256];   // of its WELCOME
};

void gateway_peer_dial(struct gateway_peer *p, struct gateway_fixture *f, const char *path, const char *token,
                       const char *subprotocols);
void gateway_peer_hang_up(struct gateway_peer *p); // without a word
void gateway_peer_send(struct gateway_peer *p, enum record_type type, uint32_t call, uint32_t rank, const char *body);
void gateway_peer_text(struct gateway_peer *p, const char *text);
// dispatch and execute as the method declares.
void gateway_peer_call(struct gateway_peer *p, uint32_t id, const char *head, const char *args);
bool gateway_peer_got(const struct gateway_peer *p, const char *text);
// It was told by an ERROR of the session and a close, or the test fails; then it hangs up.
void gateway_peer_is_closed(struct gateway_peer *p, unsigned code, const char *error);

// Dial in, say HELLO, and are there on return.
void gateway_client(struct gateway_peer *p, struct gateway_fixture *f); // alice, for ml/llama
void gateway_worker(struct gateway_peer *p, struct gateway_fixture *f, uint32_t rank, uint32_t attempt);
void gateway_worker_hello(struct gateway_peer *p, uint32_t rank, const char *ticket);

// Returns the answer to these bytes until the connection ends. The caller frees it.
char *gateway_ask(struct gateway_fixture *f, const void *bytes, size_t len);
char *gateway_post(struct gateway_fixture *f, const char *path, const char *token, const char *body);

#define GATEWAY_UNTIL(f, condition) \
    TURN_UNTIL(loop_run_once((f)->loop, 10), condition, (f)->trace_of ? (f)->trace_of : "")
