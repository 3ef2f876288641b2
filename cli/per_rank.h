// SPDX-License-Identifier: Apache-2.0
// One line per rank (-o ranks), only if there is one result per rank, in rank order.
#pragma once

#include "cli/proxy.h"

// Calls, and prints one line per rank. If the method was registered with a mode that does not give one result per rank,
// it is not called. If this is known only after the call, because no rank was connected before, the result is printed
// as JSON. Both are errors. Returns the exit status.
int ranks_call(const struct cli_options *o, struct proxy *c, cadre_client_request *request);
