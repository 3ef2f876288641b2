// SPDX-License-Identifier: Apache-2.0
// `cadre-agent run` under somebody who watches it closely: over a descriptor that was handed down, a SOCK_SEQPACKET
// socket, goes what an operator would be told and say, one record a packet. Out: EXITED, and REFUSED; in: KILL.
#pragma once

#include "worker/agent/agent.h"

enum { CONTROL_PACKET_MAX = 64 * 1024 };

struct control;

// ERR_INVALID where the descriptor cannot be waited for. It is closed with the control.
struct control *control_new(struct loop *loop, struct agent *agent, int fd, struct err *err);
void control_free(struct control *c); // accepts NULL
void control_report(struct control *c, const struct agent_report *r);
