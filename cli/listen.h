// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/cli_options.h"

// Lines of the ranks from the proxy instead of the pods' logs: of a local run, and where they are to be folded. False:
// neither of them.
bool listen_serves(const struct options *o, int *ret_status);
