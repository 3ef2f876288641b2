// SPDX-License-Identifier: Apache-2.0
#include "bench/lib/samples.h"

#include "common/base/mem.h"

#include <math.h>
#include <stdlib.h>

void samples_add(struct samples *s, double value)
{
    if (s->n < SAMPLES_MAX)
        s->values[s->n++] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double samples_quantile(const struct samples *s, double q)
{
    if (!s->n)
        return 0;
    struct samples sorted = *s;
    qsort(sorted.values, sorted.n, sizeof sorted.values[0], by_value);
    double rank = ceil(q * (double)sorted.n);
    return sorted.values[rank < 1 ? 0 : (size_t)rank - 1];
}

double samples_median(const struct samples *s)
{
    return samples_quantile(s, 0.5);
}

void samples_ratios(const struct samples *of, const struct samples *to, struct samples *ret)
{
    *ret = (struct samples){0};
    for (size_t i = 0; i < MIN(of->n, to->n); i++)
        if (to->values[i] > 0)
            samples_add(ret, of->values[i] / to->values[i]);
}
