// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/strategy.h"

static const struct strategy_traits table[] = {
    [STRATEGY_PACK] = {0},
    [STRATEGY_SPREAD] = {.even = true},
    [STRATEGY_STRICT_PACK] = {.together = true},
    [STRATEGY_STRICT_SPREAD] = {.distinct = true, .even = true},
};

const struct strategy_traits *strategy_traits(enum strategy s)
{
    return &table[s];
}
