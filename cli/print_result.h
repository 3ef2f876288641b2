// SPDX-License-Identifier: Apache-2.0
// The result of a call on stdout, as the options want it.
#pragma once

#include "cli/proxy.h"

int result_print(const struct options *o, const struct proxy *c); // 0, or 1 with the reason on stderr
