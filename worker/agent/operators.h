// SPDX-License-Identifier: Apache-2.0
// All replicas of the operator: a connection to each address of its headless Service. Reports go to all of them; the
// leader sends the commands.
#pragma once

#include "worker/agent/agent_connection.h"

struct operators;

// url: "wss://host:port", or "ws://host:port" without TLS. ca_pem: the certificates to trust, NULL = the ones of the
// system. gpus: NULL = the GPUs are not watched. ERR_INVALID: the url or the certificates are wrong.
struct operators *operators_new(struct loop *loop, struct agent *agent, const struct probe *gpus, const char *url,
                                const char *ca_pem, const char *token_file, struct err *err);
void operators_free(struct operators *o);    // accepts NULL
void operators_goodbye(struct operators *o); // the pod ends
// Says goodbye to all. operators_closed() tells when all connections are closed.
void operators_close(struct operators *o);
bool operators_closed(const struct operators *o);
void operators_printed(struct operators *o, const char *group, int rank, const char *text, size_t len);
void operators_report(struct operators *o, const struct agent_report *r);
void operators_gpus(struct operators *o); // like agent_connection_gpus()
