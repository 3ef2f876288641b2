// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/cli_options.h"

// Prints lines of the ranks from the proxy instead of the pods' logs: for a local run, or if equal lines are folded.
// False: neither applies.
bool listen_serves(const struct cli_options *o, int *ret_status);
