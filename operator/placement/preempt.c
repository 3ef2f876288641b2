// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/preempt.h"

#include "common/base/mem.h"
#include "operator/api/pod_constraints.h"
#include "operator/placement/place.h"

#include <stdlib.h>

struct preemption {
    struct search *s;
    struct candidate **items;
    size_t n;
    size_t n_victims;
};

// The bundles of a gang are made from one template, so they have one priority.
static const struct pod_constraints *pod_of_gang(const struct search *s)
{
    return s->shapes[0].constraints;
}

static bool admits_any(const struct search *s, const struct search_node *node)
{
    for (size_t i = 0; i < s->n_shapes; i++)
        if (node_admits(node->room->node, s->shapes[i].constraints, s->topology_key) == NODE_OK)
            return true;
    return false;
}

static void collect(struct preemption *p, enum victims_who who)
{
    struct search *s = p->s;
    p->items = arena_array(s->arena, s->n_nodes, sizeof(struct candidate *));
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct victims v = {0};
        struct search_node *node = &s->nodes[i];
        if (!(node->marks & MARK_HELD) && !list_empty(&node->room->occupants) && admits_any(s, node))
            victims_of(node->room, who, pod_of_gang(s)->priority, s->gang, s->arena, &v);
        if (!v.n)
            continue;
        struct candidate *c = arena_new(s->arena, struct candidate);
        *c = (struct candidate){.node = i, .victims = v};
        node->candidate = c;
        p->items[p->n++] = c;
        p->n_victims += v.n;
    }
}

static int by_value(const void *x, const void *y)
{
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

// The priorities of the pods that may go, ascending.
static size_t levels_of(const struct preemption *p, int32_t **ret)
{
    int32_t *levels = arena_array(p->s->arena, p->n_victims, sizeof *levels);
    size_t n = 0, distinct = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct victims *v = &p->items[i]->victims;
        for (size_t k = 0; k < v->n; k++)
            if (k == 0 || victims_priority(v, k) != victims_priority(v, k - 1))
                levels[n++] = victims_priority(v, k);
    }
    qsort(levels, n, sizeof *levels, by_value);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || levels[i] != levels[distinct - 1])
            levels[distinct++] = levels[i];
    *ret = levels;
    return distinct;
}

// From here on, the pods with at most this priority count as gone.
static void set_level(struct preemption *p, int32_t level)
{
    for (size_t i = 0; i < p->n; i++) {
        struct candidate *c = p->items[i];
        c->first = victims_below(&c->victims, level);
        c->minus = victims_minus(&c->victims, c->first, p->s->arena);
    }
}

// Tries to place the gang as if the victims of the first n candidates were gone.
static bool fits(struct preemption *p, size_t n)
{
    for (size_t i = 0; i < p->n; i++) {
        p->items[i]->gone = i < n;
        p->items[i]->room_max = INT64_MAX;
    }
    return place_all(p->s);
}

// The lowest level up to hi that is enough. hi is enough, and a higher level is never worse.
static size_t find_level(struct preemption *p, const int32_t *levels, size_t hi)
{
    size_t lo = 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        set_level(p, levels[mid]);
        if (fits(p, p->n))
            hi = mid;
        else
            lo = mid + 1;
    }
    set_level(p, levels[hi]);
    return hi;
}

static size_t find_count(struct preemption *p)
{
    size_t lo = 1, hi = p->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (fits(p, mid))
            hi = mid;
        else
            lo = mid + 1;
    }
    return hi;
}

// The gain for this shape if the victims of each candidate were gone, and the cost.
static void weigh(struct preemption *p, const struct shape *shape)
{
    struct search *s = p->s;
    const struct pod_constraints *pod = shape->constraints;
    bool one = s->strategy->distinct; // a second bundle in a domain is useless
    for (size_t i = 0; i < p->n; i++)
        p->items[i]->gone = false;
    search_reset(s);
    search_survey(s, pod);
    for (size_t d = 0; d < s->n_domains; d++) {
        for (size_t i = s->domains[d].first; i < s->domains[d].first + s->domains[d].n; i++) {
            struct candidate *c = s->nodes[i].candidate;
            if (!c)
                continue;
            struct resources none = {0};
            int64_t now = s->node_choices[i].room, most = one ? MIN(s->domain_choices[d].room, 1) : now;
            int64_t then = room_fit(s->nodes[i].room, false, &c->minus, &pod->requests);
            if (s->nodes[i].marks & s->exclude || !search_allows(s, d) ||
                node_admits(s->nodes[i].room->node, pod, s->topology_key) != NODE_OK)
                then = 0;
            c->gain = MIN(one ? MIN(then, 1) : then, most + shape->n) - most;
            c->gain = MAX(c->gain, 0);
            c->cost =
                victims_cost(s->nodes[i].room, &c->victims, c->first, c->gain ? &pod->requests : &none, now + c->gain);
        }
    }
}

// The least harm comes first: the lowest priority, then the fewest pods per bundle, then the most bundles.
static int by_cost(const void *x, const void *y)
{
    const struct candidate *a = *(struct candidate *const *)x, *b = *(struct candidate *const *)y;
    if (!a->gain != !b->gain)
        return a->gain ? -1 : 1;
    if (a->cost.priority != b->cost.priority)
        return a->cost.priority < b->cost.priority ? -1 : 1;
    __int128 l = (__int128)a->cost.n * b->gain, r = (__int128)b->cost.n * a->gain;
    if (l != r)
        return l < r ? -1 : 1;
    if (a->gain != b->gain)
        return a->gain > b->gain ? -1 : 1;
    return a->node < b->node ? -1 : 1;
}

static int by_domain_cost(const void *x, const void *y)
{
    const struct candidate *a = *(struct candidate *const *)x, *b = *(struct candidate *const *)y;
    if (a->domain_cost != b->domain_cost)
        return a->domain_cost < b->domain_cost ? -1 : 1;
    if (a->gain != b->gain) // the one with the nearest number
        return a->gain < b->gain ? -1 : 1;
    return by_cost(x, y);
}

// StrictPack: the cost of a node is the cost of getting all n bundles into its domain.
static void weigh_domains(struct preemption *p, int64_t n)
{
    struct search *s = p->s;
    struct candidate **list = arena_array(s->arena, p->n, sizeof(struct candidate *));
    for (size_t d = 0; d < s->n_domains; d++) {
        const struct domain *domain = &s->domains[d];
        size_t n_list = 0, cost = 0;
        int64_t need = n - s->domain_choices[d].room;
        for (size_t i = domain->first; i < domain->first + domain->n; i++)
            if (s->nodes[i].candidate)
                list[n_list++] = s->nodes[i].candidate;
        qsort(list, n_list, sizeof(struct candidate *), by_cost);
        for (size_t i = 0; i < n_list && need > 0; i++) {
            need -= list[i]->gain;
            cost += list[i]->cost.n;
        }
        for (size_t i = 0; i < n_list; i++)
            list[i]->domain_cost = need > 0 ? SIZE_MAX : cost;
    }
    qsort(p->items, p->n, sizeof(struct candidate *), by_domain_cost);
}

// If the victims make more room than needed, the costliest candidate gives only the room that is needed.
static void trim(struct preemption *p, size_t n_gone)
{
    struct search *s = p->s;
    struct candidate *last = p->items[n_gone - 1];
    if (s->n_shapes > 1 || s->strategy->together || s->strategy->distinct)
        return;
    size_t unused;
    search_reset(s);
    search_survey(s, s->shapes[0].constraints);
    last->room_max = s->node_choices[last->node].room - (search_reach(s, &unused) - s->shapes[0].n);
}

static bool evict_least(struct preemption *p, const int32_t *levels, size_t n_levels)
{
    struct search *s = p->s;
    set_level(p, levels[n_levels - 1]);
    if (!fits(p, p->n))
        return false;
    find_level(p, levels, n_levels - 1);
    fits(p, 0); // s->failed is the shape that needs it
    const struct shape shape = s->shapes[s->failed];
    weigh(p, &shape);
    if (s->strategy->together)
        weigh_domains(p, s->n_shapes > 1 ? s->n_wanted : shape.n);
    else
        qsort(p->items, p->n, sizeof(struct candidate *), by_cost);
    size_t n_gone = find_count(p);
    fits(p, n_gone);
    trim(p, n_gone);
    return place_all(s);
}

bool preempt_place(struct search *s, const struct cluster *c, enum victims_who who)
{
    struct preemption p = {.s = s};
    unsigned exclusions[EXCLUSIONS_MAX];
    int32_t *levels;
    if (!s->n_shapes ||
        (who == VICTIMS_LOWER && (!pod_of_gang(s)->preempts || cluster_lowest_priority(c) >= pod_of_gang(s)->priority)))
        return false;
    collect(&p, who);
    if (!p.n)
        return false;
    size_t n_levels = levels_of(&p, &levels), n_exclusions = place_exclusions(s, exclusions);
    if (who != VICTIMS_LOWER) { // priorities do not matter
        levels[0] = INT32_MAX;
        n_levels = 1;
    }
    for (size_t i = 0; i < n_exclusions; i++) {
        s->exclude = exclusions[i];
        if (evict_least(&p, levels, n_levels))
            return true;
    }
    for (size_t i = 0; i < p.n; i++)
        s->nodes[p.items[i]->node].candidate = NULL;
    return false;
}

struct victims_cost preempt_cost(const struct search *s)
{
    struct victims_cost sum = {.priority = INT32_MIN};
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct candidate *c = s->nodes[i].candidate;
        if (!c || !c->gone)
            continue;
        struct resources placed = {0}, gone = victims_minus(&c->victims, c->first, s->arena);
        for (size_t k = 0; k < gone.n; k++)
            gone.items[k].milli = -gone.items[k].milli;
        resources_add(&placed, &s->nodes[i].taken, s->arena);
        resources_add(&placed, &gone, s->arena);
        struct victims_cost cost = victims_cost(s->nodes[i].room, &c->victims, c->first, &placed, 1);
        sum.n += cost.n;
        sum.priority = MAX(sum.priority, cost.priority);
    }
    return sum;
}
