// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/budget.h"

#include "common/base/mem.h"

#define MIB ((size_t)1 << 20)
#define ALL_MAX (2048 * MIB)
#define ALL_MIN (16 * MIB)
#define BASE (16 * MIB) // of a process that holds nothing

struct budget budget_of(size_t limit)
{
    size_t all = ALL_MAX;
    if (limit)
        all = MIN(MAX(limit / 2, ALL_MIN + BASE) - BASE, ALL_MAX);
    return (struct budget){.all = all,
                           .session = MIN(all / 4, 512 * MIB),
                           .queue = MIN(all / 8, 256 * MIB),
                           .whole = MIN(all / 4, 64 * MIB),
                           .unadmitted = MIN(all / 16, 16 * MIB)};
}
