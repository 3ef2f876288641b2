// SPDX-License-Identifier: Apache-2.0
#include "common/base/spin.h"

#include "common/base/mem.h"

bool spin_wanted(const struct spin *s)
{
    return s->score >= SPIN_TRUST && s->rest_us == 0;
}

static void count(struct spin *s, bool was_short)
{
    if (was_short)
        s->score = MIN(s->score + 1, SPIN_SCORE_MAX);
    else if (s->score > 0)
        s->score = MAX(s->score - 2, 0);
}

void spin_looked(struct spin *s, int64_t us, bool found)
{
    count(s, found);
    if (us > SPIN_LATE_US)
        s->rest_us = MIN(us, SPIN_REST_US_MAX / SPIN_REST) * SPIN_REST;
}

void spin_slept(struct spin *s, int64_t us)
{
    count(s, us <= SPIN_SHORT_US);
    s->rest_us = MAX(s->rest_us - us, 0);
}
