// SPDX-License-Identifier: Apache-2.0
// Connects `cadre-agent run` to a program that watches it. A SOCK_SEQPACKET socket, passed as a descriptor, carries the
// records that an operator would send and get, one per packet. The agent sends EXITED, STOPPED and REFUSED. It takes
// KILL, STOP and PREPARE; PREPARE begins a newer attempt. When the other end closes, the agent ends.
#pragma once

#include "worker/agent/agent.h"

enum { CONTROL_PACKET_MAX = 64 * 1024 };

struct control;

// ERR_INVALID: the loop cannot wait for this descriptor. control_free() closes it.
struct control *control_new(struct loop *loop, struct agent *agent, int fd, struct err *err);
void control_free(struct control *c); // accepts NULL
void control_report(struct control *c, const struct agent_report *r);
bool control_listens(const struct control *c); // the other end is open, and may begin another attempt; c may be NULL
