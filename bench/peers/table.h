// SPDX-License-Identifier: Apache-2.0
// The table: a line a measure, a column a system, in Markdown.
#pragma once

#include "bench/peers/trials.h"

enum { TABLE_SYSTEMS_MAX = 8 };

void table_print(const struct world *w, const struct plan *plan, const struct trials *trials, size_t n);
