// SPDX-License-Identifier: Apache-2.0
// All replicas of the operator: a connection to each address of its headless Service. Reports go to all of them; the
// leader sends the commands.
#pragma once

#include "worker/agent/agent_connection.h"

struct operators;

// url: "wss://host:port", or "ws://host:port" without TLS. ca_pem: whom to trust, NULL = the system's certificates.
// gpus: NULL = nobody watches them. ERR_INVALID for what makes no sense.
struct operators *operators_new(struct loop *loop, struct agent *agent, const struct probe *gpus, const char *url,
                                const char *ca_pem, const char *token_file, struct err *err);
void operators_free(struct operators *o);    // accepts NULL
void operators_goodbye(struct operators *o); // the pod ends
// Says goodbye to all; operators_closed() tells when they have heard it.
void operators_close(struct operators *o);
bool operators_closed(const struct operators *o);
void operators_printed(struct operators *o, const char *group, int rank, const char *text, size_t len);
void operators_report(struct operators *o, const struct agent_report *r);
void operators_gpus(struct operators *o); // as connection_gpus()
