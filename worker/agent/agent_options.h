// SPDX-License-Identifier: Apache-2.0
// The command line of cadre-agent.
#pragma once

#include "worker/agent/gpus.h"

#include <stdint.h>

enum { OPTIONS_USAGE = 2 };

enum options_mode {
    OPTIONS_SERVE,   // is pid 1 of a worker pod, and waits for the operator
    OPTIONS_RUN,     // supervises some processes by itself
    OPTIONS_INSTALL, // copies the program
};

struct options {
    enum options_mode mode;
    const char *const *argv; // the command, NULL = none
    int64_t grace_ms;
    // OPTIONS_SERVE
    const char *operator_url;
    const char *token_file; // NULL = no token
    // OPTIONS_RUN
    int processes;
    int attempt;
    int control;     // the descriptor for control.h, -1 = none
    int master_port; // 0 = a free one
    enum gpus_visibility gpu_visibility;
    int gpus;                 // for each process, or GPUS_SHARE
    const char *process_gpus; // the GPUs of each process, "0;1;2,3;-"; NULL = not given
    // OPTIONS_INSTALL
    const char *dir;
};

// Returns -1 if the program should go on, or the exit code: 0 after --help and --version, OPTIONS_USAGE after a wrong
// command line. The error is on stderr then.
int options_parse(int argc, char **argv, struct options *ret);
