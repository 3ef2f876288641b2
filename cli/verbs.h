// SPDX-License-Identifier: Apache-2.0
// The commands. Each returns the exit status: 0, or 1 with the reason on stderr.
#pragma once

#include "cli/cli_options.h"

int verb_call(const struct cli_options *o);
int verb_request(const struct cli_options *o); // info, kill, put, get and free
int verb_stack(const struct cli_options *o);
int verb_top(const struct cli_options *o);
int verb_why(const struct cli_options *o);
int verb_logs(const struct cli_options *o);
int verb_ca(const struct cli_options *o);
// Becomes cadre-local, which has its own options. argv: "run" and all that follows. Returns only if this fails.
int verb_run(char **argv);
