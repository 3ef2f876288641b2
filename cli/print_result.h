// SPDX-License-Identifier: Apache-2.0
// Prints the result of a call on stdout, in the form that the options ask for.
#pragma once

#include "cli/proxy.h"

int result_print(const struct cli_options *o, const struct proxy *c); // 0, or 1 with the reason on stderr
