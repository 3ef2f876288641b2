// SPDX-License-Identifier: Apache-2.0
// The table in Markdown: a line for each measure, a column for each system.
#pragma once

#include "bench/peers/trials.h"

enum { TABLE_SYSTEMS_MAX = 8 };

void table_print(const struct world *w, const struct plan *plan, const struct trials *trials, size_t n);
