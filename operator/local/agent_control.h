// SPDX-License-Identifier: Apache-2.0
// The other end of `cadre-agent run --control`. It receives the agent's reports about its processes, and sends
// commands.
#pragma once

#include "common/base/err.h"
#include "common/base/loop.h"

struct agent_control;

struct agent_control_events { // called by the loop, and inside agent_control_drain()
    void (*exited)(void *ctx, uint32_t attempt, uint32_t rank, int exit_code, const char *last_lines);
    void (*stopped)(void *ctx, uint32_t attempt); // no process of the attempt runs any more
    void (*kill_refused)(void *ctx, uint32_t rank, const char *why);
    void *ctx;
};

struct agent_control *agent_control_new(struct loop *loop, const struct agent_control_events *events);
void agent_control_free(struct agent_control *r); // accepts NULL
// Opens a socket pair for the next agent. *ret_fd is the agent's end: the caller passes it to the agent, and closes it.
// Errors: ERR_UNAVAILABLE.
int agent_control_open(struct agent_control *r, int *ret_fd, struct err *err);
// Call it after the agent has ended: it reads the reports that the agent sent before.
void agent_control_drain(struct agent_control *r);
// Commands the agent to kill a rank. ERR_UNAVAILABLE: there is no agent, or it does not read.
int agent_control_kill(struct agent_control *r, const char *group_uid, uint32_t attempt, uint32_t rank,
                       struct err *err);
// Commands the agent to begin a newer attempt when nothing of the previous one runs any more. Errors: ERR_UNAVAILABLE.
int agent_control_prepare(struct agent_control *r, const char *group_uid, uint32_t attempt, struct err *err);
// Commands the agent to end with the exit code of the attempt. Errors: ERR_UNAVAILABLE.
int agent_control_end(struct agent_control *r, const char *group_uid, uint32_t attempt, struct err *err);
