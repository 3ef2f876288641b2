// SPDX-License-Identifier: Apache-2.0
// The other end of `cadre-agent run --control`: the agent's reports about its processes, and commands.
#pragma once

#include "common/base/err.h"
#include "common/base/loop.h"

struct agent_control;

struct agent_control_events { // from the loop, and from agent_control_drain()
    void (*exited)(void *ctx, uint32_t attempt, uint32_t rank, int exit_code, const char *last_lines);
    void (*stopped)(void *ctx, uint32_t attempt); // none of its processes runs any more
    void (*kill_refused)(void *ctx, uint32_t rank, const char *why);
    void *ctx;
};

struct agent_control *agent_control_new(struct loop *loop, const struct agent_control_events *events);
void agent_control_free(struct agent_control *r); // accepts NULL
// For the next agent: its end, for the caller to hand down and to close. ERR_UNAVAILABLE.
int agent_control_open(struct agent_control *r, int *ret_fd, struct err *err);
void agent_control_drain(struct agent_control *r); // after the end of the agent: what it has said before
// ERR_UNAVAILABLE: no agent is there, or it does not listen.
int agent_control_kill(struct agent_control *r, const char *group_uid, uint32_t attempt, uint32_t rank,
                       struct err *err);
// Begins a newer attempt, once nothing of the one before is left. ERR_UNAVAILABLE.
int agent_control_prepare(struct agent_control *r, const char *group_uid, uint32_t attempt, struct err *err);
// The agent ends with the exit code of the attempt. ERR_UNAVAILABLE.
int agent_control_end(struct agent_control *r, const char *group_uid, uint32_t attempt, struct err *err);
