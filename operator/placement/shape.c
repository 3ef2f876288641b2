// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/shape.h"

#include "operator/api/pod_constraints.h"

#include <stdlib.h>

// Neighbouring bundles mostly have the same shape, so the last bundle's shape is tried first.
static size_t find(const struct shape *shapes, size_t n, size_t last, const struct pod_constraints *c)
{
    if (last < n && shapes[last].constraints == c)
        return last;
    size_t i = 0;
    while (i < n && shapes[i].constraints != c)
        i++;
    return i;
}

size_t shapes_of(const struct gang *g, struct arena *a, struct shape **ret)
{
    struct shape *shapes = arena_array(a, g->n_bundles, sizeof *shapes);
    size_t *number = arena_array(a, g->n_bundles, sizeof *number);
    size_t n = 0, k = 0;
    for (size_t i = 0; i < g->n_bundles; i++) {
        if (g->bundles[i].fixed_node)
            continue;
        k = find(shapes, n, k, g->bundles[i].constraints);
        if (k == n)
            shapes[n++].constraints = g->bundles[i].constraints;
        shapes[k].n++;
        number[i] = k;
    }

    size_t **list = arena_array(a, n, sizeof *list);
    for (size_t i = 0; i < n; i++)
        shapes[i].bundles = list[i] = arena_array(a, (size_t)shapes[i].n, sizeof **list);
    for (size_t i = 0; i < g->n_bundles; i++)
        if (!g->bundles[i].fixed_node)
            *list[number[i]]++ = i;
    *ret = shapes;
    return n;
}

static bool wants_gpus(const struct shape *s)
{
    return resources_get(&s->constraints->requests, RESOURCE_GPU) > 0;
}

static int by_hardness(const void *x, const void *y)
{
    const struct shape *a = x, *b = y;
    if (wants_gpus(a) != wants_gpus(b))
        return wants_gpus(a) ? -1 : 1;
    __int128 l = (__int128)a->room * b->n, r = (__int128)b->room * a->n;
    if (l != r)
        return l < r ? -1 : 1;
    return a->bundles[0] < b->bundles[0] ? -1 : 1;
}

void shapes_sort(struct shape *shapes, size_t n)
{
    qsort(shapes, n, sizeof *shapes, by_hardness);
}

const char *shape_indexes(const struct shape *s, struct arena *a)
{
    const char *text = "";
    int ranges = 0;
    for (int64_t i = 0, end; i < s->n; i = end) {
        for (end = i + 1; end < s->n && s->bundles[end] == s->bundles[end - 1] + 1;)
            end++;
        const char *comma = i ? "," : "";
        if (ranges++ == 3)
            return arena_printf(a, "%s,...", text);
        if (end == i + 1)
            text = arena_printf(a, "%s%s%zu", text, comma, s->bundles[i]);
        else
            text = arena_printf(a, "%s%s%zu-%zu", text, comma, s->bundles[i], s->bundles[end - 1]);
    }
    return text;
}
