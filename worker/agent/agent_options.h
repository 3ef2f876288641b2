// SPDX-License-Identifier: Apache-2.0
// The command line of cadre-agent.
#pragma once

#include "worker/agent/gpus.h"

#include <stdint.h>

enum { OPTIONS_USAGE = 2 };

enum options_mode {
    OPTIONS_SERVE,   // pid 1 of a worker pod: waits for the operator
    OPTIONS_RUN,     // supervises some processes by itself
    OPTIONS_INSTALL, // copies itself
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
    int control;     // descriptor (control.h), -1 = none
    int master_port; // 0 = a free one
    enum gpus_visibility gpu_visibility;
    int gpus;                 // a worker's, or GPUS_SHARE
    const char *process_gpus; // whose is which, "0;1;2,3;-"; NULL = not said
    // OPTIONS_INSTALL
    const char *dir;
};

// Returns -1 to go on, or the exit code: 0 after --help and --version, OPTIONS_USAGE for a wrong command line (said on
// stderr).
int options_parse(int argc, char **argv, struct options *ret);
