// SPDX-License-Identifier: Apache-2.0
// `cadre-agent run` under a program that watches it: a SOCK_SEQPACKET socket, passed as a descriptor, carries the
// records that an operator would send and get, one per packet. Out: EXITED, STOPPED and REFUSED. In: KILL, PREPARE,
// which begins a newer attempt, and STOP. When the other end closes, the agent ends.
#pragma once

#include "worker/agent/agent.h"

enum { CONTROL_PACKET_MAX = 64 * 1024 };

struct control;

// ERR_INVALID where the descriptor cannot be waited for. It is closed with the control.
struct control *control_new(struct loop *loop, struct agent *agent, int fd, struct err *err);
void control_free(struct control *c); // accepts NULL
void control_report(struct control *c, const struct agent_report *r);
bool control_listens(const struct control *c); // somebody is there who may begin another attempt; c may be NULL
