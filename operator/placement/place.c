// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/place.h"

#include "common/base/mem.h"

#include <string.h>

static bool place_shape(struct search *s, struct shape *shape)
{
    size_t unused;
    search_survey(s, shape->constraints);
    if (search_reach(s, &unused) < shape->n)
        return false;
    if (s->strategy->together)
        pick_tightest(s->domain_choices, s->n_domains, shape->n)->take = shape->n;
    else if (s->strategy->even)
        pick_evenly(s->domain_choices, s->n_domains, shape->n, s->arena);
    else
        pick_fewest(s->domain_choices, s->n_domains, shape->n, s->arena);
    shape->placed = 0;
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domain_choices[i].take)
            search_fill(s, i, shape, s->domain_choices[i].take);
    return true;
}

// Starts again, and places as much of every shape as fits into one domain. Returns how many bundles that is. *ret_place
// is the domain as the first shape found it.
static int64_t fill_domain(struct search *s, size_t domain, struct choice *ret_place)
{
    int64_t placed = 0;
    for (size_t i = 0; i < s->n_shapes; i++) {
        struct shape *shape = &s->shapes[i];
        search_survey_domain(s, domain, shape->constraints);
        if (i == 0)
            *ret_place = s->domain_choices[domain];
        int64_t n = MIN(shape->n, s->domain_choices[domain].room);
        shape->placed = 0;
        if (n > 0)
            search_fill(s, domain, shape, n);
        placed += n;
    }
    return placed;
}

// If there are several shapes, only a try shows whether they fit together. Takes the tightest of the domains that pass.
static bool place_in_one_domain(struct search *s)
{
    struct choice *passed = arena_array(s->arena, s->n_domains, sizeof *passed), place = {0};
    s->nearest = (struct nearest){0};
    for (size_t i = 0; i < s->n_domains; i++) {
        int64_t placed = fill_domain(s, i, &place);
        search_reset_domain(s, i);
        if (placed == s->n_wanted) {
            passed[i] = place;
            if (s->n_fixed)
                passed[i].avoid = !place.have;
        }
        if (placed > s->nearest.placed)
            s->nearest = (struct nearest){.placed = placed, .domain = i};
    }
    const struct choice *best = pick_tightest(passed, s->n_domains, s->shapes[0].n);
    if (!best)
        return false;
    fill_domain(s, (size_t)(best - passed), &place);
    return true;
}

static void sort_shapes(struct search *s)
{
    for (size_t i = 0; i < s->n_shapes; i++) {
        struct shape *shape = &s->shapes[i];
        shape->room = 0;
        search_survey(s, shape->constraints);
        for (size_t d = 0; d < s->n_domains; d++)
            shape->room += s->domain_choices[d].room;
    }
    shapes_sort(s->shapes, s->n_shapes);
}

// Places one shape after the other. On failure, the search is in the state in which the shape that did not fit found
// it.
static bool place_in_turn(struct search *s)
{
    search_reset(s);
    for (size_t i = 0; i < s->n_shapes; i++) {
        s->failed = i;
        if (!place_shape(s, &s->shapes[i]))
            return false;
    }
    return true;
}

// If the shapes before it took the room of a shape, that shape goes first in the next try.
static bool put_failed_first(struct search *s)
{
    if (s->failed == 0)
        return false;
    struct shape failed = s->shapes[s->failed];
    memmove(s->shapes + 1, s->shapes, s->failed * sizeof *s->shapes);
    s->shapes[0] = failed;
    return true;
}

bool place_all(struct search *s)
{
    enum { TRIES = 4 };
    if (s->n_shapes > 1) {
        search_reset(s);
        sort_shapes(s);
        s->failed = 0;
        if (!s->strategy->even && place_in_one_domain(s))
            return true;
        if (s->strategy->together)
            return false;
    }
    for (int i = 1; !place_in_turn(s); i++)
        if (i == TRIES || !put_failed_first(s))
            return false;
    return true;
}

static bool wants_gpus(const struct gang *g)
{
    for (size_t i = 0; i < g->n_bundles; i++)
        if (resources_get(&g->bundles[i].constraints->requests, RESOURCE_GPU))
            return true;
    return false;
}

size_t place_exclusions(const struct search *s, unsigned *ret)
{
    static const unsigned all[EXCLUSIONS_MAX] = {MARK_AVOID | MARK_GPU, MARK_AVOID, MARK_GPU, 0};
    const struct gang *g = s->gang;
    unsigned may = (g->n_avoid ? MARK_AVOID : 0) | (!s->strategy->even && !wants_gpus(g) ? MARK_GPU : 0);
    size_t n = 0;
    for (size_t i = 0; i < EXCLUSIONS_MAX; i++)
        if (!(all[i] & ~may))
            ret[n++] = all[i] | MARK_HELD;
    return n;
}

bool place_preferably(struct search *s)
{
    unsigned exclusions[EXCLUSIONS_MAX];
    size_t n = place_exclusions(s, exclusions);
    for (size_t i = 0; i < n; i++) {
        s->exclude = exclusions[i];
        if (place_all(s))
            return true;
    }
    return false;
}
