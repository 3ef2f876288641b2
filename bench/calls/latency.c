// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/latency.h"

#include "common/base/mem.h"

#include <stdlib.h>

enum { LATENCY_MAX = 1 << 20 };

void latency_add(struct latency *l, int64_t us)
{
    l->count++;
    if (l->n == LATENCY_MAX)
        return;
    if (l->n == l->size) {
        l->size = l->size ? 2 * l->size : 1024;
        l->us = xrealloc(l->us, l->size, sizeof *l->us);
    }
    l->us[l->n++] = (uint32_t)MIN(us, UINT32_MAX);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

double latency_finish(struct latency *l, int64_t took_us, double *ret_p50_us)
{
    double rate = took_us > 0 ? (double)l->count * 1e6 / (double)took_us : 0;
    if (l->n)
        qsort(l->us, l->n, sizeof *l->us, by_value);
    *ret_p50_us = l->n ? l->us[l->n / 2] : 0;
    free(l->us);
    *l = (struct latency){0};
    return rate;
}
