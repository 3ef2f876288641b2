// SPDX-License-Identifier: Apache-2.0
// The proxy on its sockets: clients, agents and worker processes of one replica on ws_server, with the router for their
// calls and the registry of agents. The authority says who a peer is (authority.h). gateway_router() and the callbacks
// say what is in the cluster. The gateway does not know Kubernetes.
//
//   /v1/connect                                    agents and worker processes (cadre.v1)
//   /v1/namespaces/{ns}[/workergroups/{name}]      clients: cadre.v1, cadre.v1.json, or POST of one JSON-RPC request
//   /v1/ca                                         GET: the certificate of the CA, without a token
//
// One thread, the loop's.
#pragma once

#include "operator/gateway/gateway_config.h"

struct gateway;

struct gateway *gateway_new(struct loop *loop, const struct gateway_config *config, struct err *err);
// Ends everything at once; only outside of callbacks. If possible, call gateway_stop() before, and turn the loop until
// gateway_idle(). Accepts NULL.
void gateway_free(struct gateway *g);

// As ws_server_listen(): returns the port, 0 for a Unix socket. TLS needs a certificate before the first connection.
int gateway_listen(struct gateway *g, const char *address, bool tls, struct err *err);
// For connections that come from now on. Where they do not fit the old ones stay.
int gateway_certificate(struct gateway *g, const char *cert_pem, const char *key_pem, const char *ca_pem,
                        struct err *err);

// No new connections. Clients get GOODBYE. For settle_ms more their calls are taken: those were sent before the
// GOODBYE was read. Then new calls are refused, and clients get close 1001 once their calls are answered, at the
// latest after drain_ms; then agents and workers do, and requests that are left 503.
void gateway_stop(struct gateway *g);
bool gateway_idle(const struct gateway *g); // nobody is connected

// For those who say what is in the cluster (router_group_set(), router_worker_exited()) and look who is connected.
struct router *gateway_router(struct gateway *g);
void gateway_group_gone(struct gateway *g, const char *uid); // router_group_gone(), and forgets its tickets

void gateway_counters(const struct gateway *g, struct gateway_counters *ret);
