// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/planner.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/placement/explanation.h"
#include "operator/placement/place.h"
#include "operator/placement/preempt.h"

static const char **names_copy(const char *const *names, size_t n, struct arena *a)
{
    const char **copy = arena_array(a, n, sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = i && str_eq(names[i], names[i - 1]) ? copy[i - 1] : arena_strdup(a, names[i]);
    return copy;
}

static void placed(const struct search *s, struct victims_cost cost, struct arena *a, struct placement *ret)
{
    *ret = (struct placement){
        .verdict = VERDICT_PLACED,
        .nodes = names_copy(s->answer, s->gang->n_bundles, a),
        .n_victims = cost.n,
    };
}

static void refused(struct search *s, const struct cluster *c, struct arena *a, struct placement *ret)
{
    s->empty = true;
    s->exclude = 0;
    bool fits_when_empty = place_all(s);
    if (fits_when_empty) { // then the present state has to be explained
        s->empty = false;
        s->exclude = MARK_HELD;
        place_all(s);
    }
    struct explanation why;
    explain(s, c, &why);
    *ret = (struct placement){
        .verdict = fits_when_empty ? VERDICT_INSUFFICIENT : VERDICT_INFEASIBLE,
        .message = arena_strdup(a, why.message),
        .details = arena_strdup(a, why.details),
        .short_of = why.short_of,
    };
}

// The search itself takes some hundred bytes per node, which nobody needs afterwards.
void planner_place(const struct cluster *c, const struct gang *g, struct arena *a, struct placement *ret)
{
    struct arena scratch = ARENA_INIT;
    struct search s;
    search_init(&s, c, g, &scratch);
    if (place_preferably(&s))
        placed(&s, (struct victims_cost){0}, a, ret);
    else if (preempt_place(&s, c, VICTIMS_LOWER))
        placed(&s, preempt_cost(&s), a, ret);
    else
        refused(&s, c, a, ret);
    arena_done(&scratch);
}

bool planner_target(const struct cluster *c, const struct gang *g, struct arena *a, const char ***ret_nodes)
{
    static const enum victims_who tries[] = {VICTIMS_GANGS, VICTIMS_ALL};
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(tries) && !found; i++) {
        struct arena scratch = ARENA_INIT;
        struct search s;
        search_init(&s, c, g, &scratch);
        found = place_preferably(&s) || preempt_place(&s, c, tries[i]);
        if (found)
            *ret_nodes = names_copy(s.answer, g->n_bundles, a);
        arena_done(&scratch);
    }
    return found;
}
