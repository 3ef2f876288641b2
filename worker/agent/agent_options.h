// SPDX-License-Identifier: Apache-2.0
// The command line of cadre-agent.
#pragma once

#include "worker/agent/gpus.h"

#include <stdint.h>

enum { AGENT_OPTIONS_USAGE = 2 };

enum agent_options_mode {
    AGENT_OPTIONS_SERVE,   // is pid 1 of a worker pod, and waits for the operator
    AGENT_OPTIONS_RUN,     // supervises some processes by itself
    AGENT_OPTIONS_INSTALL, // copies the program
};

struct agent_options {
    enum agent_options_mode mode;
    const char *const *argv; // the command, NULL = none
    int64_t grace_ms;
    // AGENT_OPTIONS_SERVE
    const char *operator_url;
    const char *token_file; // NULL = no token
    // AGENT_OPTIONS_RUN
    int processes;
    int attempt;
    int control;     // the descriptor for control.h, -1 = none
    int master_port; // 0 = a free one
    enum gpus_visibility gpu_visibility;
    int gpus;                 // for each process, or GPUS_SHARE
    const char *process_gpus; // the GPUs of each process, "0;1;2,3;-"; NULL = not given
    // AGENT_OPTIONS_INSTALL
    const char *dir;
};

// Returns -1 if the program should go on, or the exit code: 0 after --help and --version, AGENT_OPTIONS_USAGE after a
// wrong command line. The error is on stderr then.
int agent_options_parse(int argc, char **argv, struct agent_options *ret);
