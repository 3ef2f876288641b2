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

static struct samples sorted(const struct samples *s)
{
    struct samples copy = *s;
    qsort(copy.values, copy.n, sizeof copy.values[0], by_value);
    return copy;
}

double samples_quantile(const struct samples *s, double q)
{
    struct samples by_size = sorted(s);
    double rank = ceil(q * (double)s->n);
    return s->n ? by_size.values[rank < 1 ? 0 : (size_t)rank - 1] : 0;
}

double samples_median(const struct samples *s)
{
    struct samples by_size = sorted(s);
    return s->n ? (by_size.values[(s->n - 1) / 2] + by_size.values[s->n / 2]) / 2 : 0;
}

void samples_ratios(const struct samples *of, const struct samples *to, struct samples *ret)
{
    *ret = (struct samples){0};
    for (size_t i = 0; i < MIN(of->n, to->n); i++)
        if (to->values[i] > 0)
            samples_add(ret, of->values[i] / to->values[i]);
}
