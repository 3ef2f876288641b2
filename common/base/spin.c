// SPDX-License-Identifier: Apache-2.0
#include "common/base/spin.h"

#include "common/base/mem.h"

bool spin_wanted(const struct spin *s)
{
    return s->score >= SPIN_TRUST;
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
    if (us > SPIN_LATE_US)
        s->score = SPIN_LATE;
    else
        count(s, found);
}

void spin_slept(struct spin *s, int64_t us)
{
    count(s, us <= SPIN_SHORT_US);
}
