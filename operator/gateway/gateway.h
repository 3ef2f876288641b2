// SPDX-License-Identifier: Apache-2.0
// The proxy with its sockets: clients, agents and worker processes of one replica on ws_server, with the router for
// their calls and the registry of agents. The authority says who a peer is (authority.h). The owner says through
// gateway_router() and the callbacks what is in the cluster. The gateway does not know Kubernetes.
//
//   /v1/connect                                    agents and worker processes (cadre.v1)
//   /v1/namespaces/{ns}[/workergroups/{name}]      clients: cadre.v1, cadre.v1.json, or POST of one JSON-RPC request
//   /v1/ca                                         GET: the certificate of the CA, without a token
//
// Runs on the loop's thread.
#pragma once

#include "operator/gateway/gateway_config.h"

struct gateway;

struct gateway *gateway_new(struct loop *loop, const struct gateway_config *config, struct err *err);
// Ends everything at once. Call it outside of callbacks. If possible, call gateway_stop() before, and turn the loop
// until gateway_idle(). Accepts NULL.
void gateway_free(struct gateway *g);

// Listens as ws_server_listen() does. Returns the port, or 0 for a Unix socket. TLS needs a certificate before the
// first connection.
int gateway_listen(struct gateway *g, const char *address, bool tls, struct err *err);
// Sets the certificate for later connections. If the texts do not fit each other, the old ones stay.
int gateway_certificate(struct gateway *g, const char *cert_pem, const char *key_pem, const char *ca_pem,
                        struct err *err);

// Takes no new connections. Clients get GOODBYE. For settle_ms, calls are still taken, because a client may have sent
// them before it read the GOODBYE. Then new calls are refused. Clients get close 1001 when their calls are answered, at
// the latest after drain_ms. After them, agents and workers get it, and open HTTP requests get 503.
void gateway_stop(struct gateway *g);
bool gateway_idle(const struct gateway *g); // no peer is connected

// For the owner. It tells the router about the cluster (router_group_set(), router_worker_exited()), and asks which
// peers are connected.
struct router *gateway_router(struct gateway *g);
// Calls router_group_gone(), and forgets the tickets of the group.
void gateway_group_gone(struct gateway *g, const char *uid);

void gateway_counters(const struct gateway *g, struct gateway_counters *ret);
