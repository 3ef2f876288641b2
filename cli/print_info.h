// SPDX-License-Identifier: Apache-2.0
// Prints the answer of group.info on stdout: tables, or JSON if the options ask for it.
#pragma once

#include "cli/proxy.h"

int info_print(const struct cli_options *o, const struct proxy *c); // 0, or 1 with the reason on stderr
