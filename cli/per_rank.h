// SPDX-License-Identifier: Apache-2.0
// One line per rank (-o ranks), only if there is one result per rank, in rank order.
#pragma once

#include "cli/proxy.h"

// Calls, and prints the results that way. A method that was registered with a mode whose results are not one for each
// rank is not called. Where that is known only after the call, because no rank was connected before, the result is
// printed as JSON. Both are an error. Returns the exit status.
int ranks_call(const struct options *o, struct proxy *c, cadre_client_request *request);
