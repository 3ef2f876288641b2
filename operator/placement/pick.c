// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/pick.h"

#include "common/base/mem.h"

#include <stdlib.h>

// Negative if a is better. The same is true for cmp_tight.
static int cmp_kept(const struct choice *a, const struct choice *b)
{
    return a->avoid != b->avoid ? a->avoid - b->avoid : a->whole - b->whole;
}

static int cmp_tight(const struct choice *a, const struct choice *b, int64_t n)
{
    bool a_filled = a->room == n, b_filled = b->room == n;
    if (a->avoid != b->avoid)
        return a->avoid - b->avoid;
    if (a_filled != b_filled)
        return b_filled - a_filled;
    if (a->whole != b->whole)
        return a->whole - b->whole;
    return (a->room > b->room) - (a->room < b->room);
}

static struct choice *tighter(struct choice *x, struct choice *best, int64_t n)
{
    return x->room >= n && (!best || cmp_tight(x, best, n) < 0) ? x : best;
}

struct choice *pick_tightest(struct choice *c, size_t n_choices, int64_t n)
{
    struct choice *best = NULL;
    for (size_t i = 0; i < n_choices; i++)
        best = tighter(&c[i], best, n);
    return best;
}

// For qsort of pointers into one array: equal elements keep their order.
static int by_most_room(const void *x, const void *y)
{
    const struct choice *a = *(struct choice *const *)x, *b = *(struct choice *const *)y;
    if (a->room != b->room)
        return a->room > b->room ? -1 : 1;
    int r = cmp_kept(a, b);
    return r ? r : (a > b) - (a < b);
}

static int by_least_harm(const void *x, const void *y)
{
    const struct choice *a = *(struct choice *const *)x, *b = *(struct choice *const *)y;
    int r = cmp_kept(a, b);
    if (r)
        return r;
    if (a->room != b->room)
        return a->room < b->room ? -1 : 1;
    return (a > b) - (a < b);
}

static struct choice *tightest_of(struct choice *const *list, size_t n_list, int64_t n)
{
    struct choice *best = NULL;
    for (size_t i = 0; i < n_list; i++)
        best = tighter(list[i], best, n);
    return best;
}

// Takes the largest choices and fills them until one choice can hold the rest: no answer has fewer choices. This last
// choice is the one with the tightest fit. The room that it leaves is used up by exchanging full choices for smaller
// ones.
static void fill_fewest(struct choice **list, size_t n_list, int64_t n)
{
    size_t n_full = 0;
    struct choice *last = tightest_of(list, n_list, n);
    if (!last) {
        qsort(list, n_list, sizeof(struct choice *), by_most_room);
        while (list[n_full]->room < n)
            n -= list[n_full++]->room;
        last = tightest_of(list + n_full, n_list - n_full, n);
    }
    last->take = n;

    // A larger full choice needs a larger replacement. So one walk from the smallest choice upwards serves all of them.
    size_t end = n_list;
    for (size_t i = n_full; i-- > 0;) {
        int64_t need = list[i]->room - (last->room - last->take);
        while (end > n_full && (list[end - 1]->room < need || list[end - 1] == last))
            end--;
        if (end > n_full && list[end - 1]->room < list[i]->room) {
            last->take += list[i]->room - list[end - 1]->room;
            list[i] = list[--end];
        }
        list[i]->take = list[i]->room;
    }
}

void pick_fewest(struct choice *c, size_t n_choices, int64_t n, struct arena *a)
{
    struct choice **list = arena_array(a, n_choices, sizeof *list);
    for (int held = 1; held >= 0 && n > 0; held--) {
        size_t n_list = 0;
        int64_t total = 0;
        for (size_t i = 0; i < n_choices; i++) {
            if (c[i].room > 0 && (c[i].have > 0) == held) {
                list[n_list++] = &c[i];
                total += c[i].room;
            }
        }
        int64_t share = MIN(n, total);
        if (share > 0)
            fill_fewest(list, n_list, share);
        n -= share;
    }
}

void pick_evenly(struct choice *c, size_t n_choices, int64_t n, struct arena *a)
{
    struct choice **open = arena_array(a, n_choices, sizeof *open);
    size_t n_open = 0;
    for (size_t i = 0; i < n_choices; i++)
        if (c[i].room > 0)
            open[n_open++] = &c[i];
    qsort(open, n_open, sizeof(struct choice *), by_least_harm);
    // Raises the lowest level by one, again and again. A choice that is full drops out.
    for (int64_t level = 0, next; n > 0 && n_open; level = next) {
        size_t kept = 0;
        next = INT64_MAX;
        for (size_t i = 0; i < n_open; i++) {
            struct choice *x = open[i];
            if (x->have + x->take == level && n > 0) {
                x->take++;
                n--;
            }
            if (x->take < x->room) {
                next = MIN(next, x->have + x->take);
                open[kept++] = x;
            }
        }
        n_open = kept;
    }
}
