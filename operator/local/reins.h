// SPDX-License-Identifier: Apache-2.0
// The other end of `cadre-agent run --control`: the agent's reports about its processes, and commands.
#pragma once

#include "common/base/err.h"
#include "common/base/loop.h"

struct reins;

struct reins_events { // from the loop, and from reins_drain()
    void (*exited)(void *ctx, uint32_t attempt, uint32_t rank, int exit_code, const char *last_lines);
    void (*stopped)(void *ctx, uint32_t attempt); // none of its processes runs any more
    void (*kill_refused)(void *ctx, uint32_t rank, const char *why);
    void *ctx;
};

struct reins *reins_new(struct loop *loop, const struct reins_events *events);
void reins_free(struct reins *r); // accepts NULL
// For the next agent: its end, for the caller to hand down and to close. ERR_UNAVAILABLE.
int reins_open(struct reins *r, int *ret_fd, struct err *err);
void reins_drain(struct reins *r); // after the end of the agent: what it has said before
// ERR_UNAVAILABLE: no agent is there, or it does not listen.
int reins_kill(struct reins *r, const char *group_uid, uint32_t attempt, uint32_t rank, struct err *err);
// Begins a newer attempt, once nothing of the one before is left. ERR_UNAVAILABLE.
int reins_prepare(struct reins *r, const char *group_uid, uint32_t attempt, struct err *err);
// The agent ends with the exit code of the attempt. ERR_UNAVAILABLE.
int reins_end(struct reins *r, const char *group_uid, uint32_t attempt, struct err *err);
