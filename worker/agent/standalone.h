// SPDX-License-Identifier: Apache-2.0
// `cadre-agent run`: one group of one pod, with a built-in operator that knows one rule: when a process fails, all end.
#pragma once

#include "worker/agent/agent.h"
#include "worker/agent/agent_options.h"
#include "worker/agent/control.h"

struct standalone {
    struct agent *agent; // gets the commands
    const struct agent_options *options;
    struct control *control; // may begin another attempt when one is over; NULL = the agent ends then
    int exited;
    int exit_code;  // of the process that failed first in the last attempt
    struct err err; // why the last attempt could not be started
};

// The agent's reports go to standalone_report(), with the struct as context.
void standalone_report(void *ctx, const struct agent_report *r);
int standalone_start(struct standalone *s, struct err *err);
