// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/search.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod_constraints.h"

#include <stdlib.h>
#include <string.h>

static const struct strategy_traits strategies[] = {
    [STRATEGY_PACK] = {0},
    [STRATEGY_SPREAD] = {.even = true},
    [STRATEGY_STRICT_PACK] = {.together = true},
    [STRATEGY_STRICT_SPREAD] = {.distinct = true, .even = true},
};

// Works only while the nodes are in the order of the cluster's rooms.
static struct search_node *node_find(struct search *s, const struct cluster *c, const char *node)
{
    const struct room *r = cluster_room(c, node);
    return r ? &s->nodes[r->number] : NULL;
}

static void note_fixed_bundles(struct search *s, const struct cluster *c)
{
    const struct gang *g = s->gang;
    for (size_t i = 0; i < g->n_bundles; i++) {
        if (!g->bundles[i].fixed_node)
            continue;
        s->n_fixed++;
        s->answer[i] = arena_strdup(s->arena, g->bundles[i].fixed_node);
        struct search_node *node = node_find(s, c, g->bundles[i].fixed_node);
        if (node) {
            node->n_fixed++;
            resources_add(&node->fixed, &g->bundles[i].constraints->requests, s->arena);
        }
    }
}

static void mark_nodes(struct search *s, const struct cluster *c)
{
    for (size_t i = 0; i < s->n_nodes; i++)
        if (resources_get(&s->nodes[i].room->node->allocatable, RESOURCE_GPU))
            s->nodes[i].marks |= MARK_GPU;
    const struct gang *g = s->gang;
    for (size_t i = 0; i < g->n_avoid + g->n_held; i++) {
        bool held = i >= g->n_avoid;
        struct search_node *node = node_find(s, c, held ? g->held[i - g->n_avoid] : g->avoid[i]);
        if (node)
            node->marks |= held ? MARK_HELD : MARK_AVOID;
    }
}

// The number of the domain with this name. Adds the domain if it is new. `table` is a hash table of domain numbers + 1.
static size_t domain_number(struct search *s, uint32_t *table, size_t mask, const char *name)
{
    size_t i = str_hash(name, strlen(name)) & mask;
    while (table[i] && strcmp(s->domains[table[i] - 1].name, name) != 0)
        i = (i + 1) & mask;
    if (!table[i]) {
        s->domains[s->n_domains].name = name;
        table[i] = (uint32_t)++s->n_domains;
    }
    return table[i] - 1;
}

static int by_name(const void *x, const void *y)
{
    const struct domain *a = x, *b = y;
    return str_cmp_natural(a->name, b->name);
}

// Sorts the nodes by domain, then node: they come sorted by node, so counting is enough.
static void group_by_label(struct search *s)
{
    size_t size = 16;
    while (size < 2 * s->n_nodes)
        size *= 2;
    uint32_t *table = arena_array(s->arena, size, sizeof *table);
    size_t nowhere = s->n_nodes; // not the number of any domain
    for (size_t i = 0; i < s->n_nodes; i++) {
        const char *name = node_domain(s->nodes[i].room->node, s->topology_key);
        size_t d = name ? domain_number(s, table, size - 1, name) : nowhere;
        s->nodes[i].domain = d;
        if (name) {
            s->domains[d].first = d; // its number until the domains are sorted
            s->domains[d].n++;
        }
    }

    qsort(s->domains, s->n_domains, sizeof *s->domains, by_name);
    size_t *next = arena_array(s->arena, s->n_nodes + 1, sizeof *next); // by number
    size_t n = 0;
    for (size_t i = 0; i < s->n_domains; i++) {
        struct domain *d = &s->domains[i];
        next[d->first] = n;
        d->first = n;
        n += d->n;
    }
    next[nowhere] = n;
    struct search_node *sorted = arena_array(s->arena, s->n_nodes, sizeof *sorted);
    for (size_t i = 0; i < s->n_nodes; i++)
        sorted[next[s->nodes[i].domain]++] = s->nodes[i];
    s->nodes = sorted;
}

static void group_by_node(struct search *s)
{
    s->n_domains = s->n_nodes;
    for (size_t i = 0; i < s->n_nodes; i++)
        s->domains[i] = (struct domain){.name = s->nodes[i].room->name, .first = i, .n = 1};
}

void search_init(struct search *s, const struct cluster *c, const struct gang *g, struct arena *a)
{
    *s = (struct search){.gang = g, .strategy = &strategies[g->strategy], .arena = a};
    s->topology_key = str_empty(g->topology_key) ? TOPOLOGY_HOSTNAME : g->topology_key;
    s->answer = arena_array(a, g->n_bundles, sizeof *s->answer);
    s->n_shapes = shapes_of(g, a, &s->shapes);
    for (size_t i = 0; i < s->n_shapes; i++)
        s->n_wanted += s->shapes[i].n;

    const struct room *const *rooms = cluster_rooms(c);
    s->n_nodes = cluster_nodes(c);
    s->nodes = arena_array(a, s->n_nodes, sizeof *s->nodes);
    for (size_t i = 0; i < s->n_nodes; i++)
        s->nodes[i].room = rooms[i];
    note_fixed_bundles(s, c);
    mark_nodes(s, c);

    s->domains = arena_array(a, s->n_nodes, sizeof *s->domains);
    if (strcmp(s->topology_key, TOPOLOGY_HOSTNAME) == 0)
        group_by_node(s);
    else
        group_by_label(s);
    s->node_choices = arena_array(a, s->n_nodes, sizeof *s->node_choices);
    s->domain_choices = arena_array(a, s->n_domains, sizeof *s->domain_choices);
    search_reset(s);
}

void search_reset_domain(struct search *s, size_t domain)
{
    struct domain *d = &s->domains[domain];
    d->n_fixed = 0;
    for (size_t i = d->first; i < d->first + d->n; i++) {
        struct search_node *node = &s->nodes[i];
        // The fixed bundles are already part of the used room, but not of an empty node's.
        node->taken = (struct resources){0};
        if (s->empty)
            resources_add(&node->taken, &node->fixed, s->arena);
        else if (node->candidate && node->candidate->gone)
            node->taken = node->candidate->minus;
        s->node_choices[i].have = node->n_fixed;
        d->n_fixed += node->n_fixed;
    }
    s->domain_choices[domain].have = d->n_fixed;
}

void search_reset(struct search *s)
{
    for (size_t i = 0; i < s->n_domains; i++)
        search_reset_domain(s, i);
}

static void survey_node(const struct search *s, size_t i, const struct pod_constraints *p)
{
    const struct search_node *node = &s->nodes[i];
    int64_t room = 0;
    if (!(node->marks & s->exclude))
        room = room_fit(node->room, s->empty, &node->taken, &p->requests);
    if (room && node_admits(node->room->node, p, s->topology_key) != NODE_OK)
        room = 0;
    bool gone = node->candidate && node->candidate->gone;
    if (gone)
        room = MIN(room, node->candidate->room_max);
    bool gpus = resources_get(&p->requests, RESOURCE_GPU);
    s->node_choices[i].room = room;
    s->node_choices[i].take = 0;
    s->node_choices[i].avoid = (node->marks & MARK_AVOID) || (!gpus && (node->marks & MARK_GPU));
    // For pods that need GPUs, a node is whole while no GPU is in use. The CPU of the daemons that run on every node
    // does not matter to them.
    s->node_choices[i].whole =
        room && !gone && !node->taken.n && room_used(node->room, gpus ? RESOURCE_GPU : RESOURCE_CPU) == 0;
}

bool search_allows(const struct search *s, size_t domain)
{
    if (s->strategy->together) // only together with the bundles that already have a node
        return s->domains[domain].n_fixed == s->n_fixed;
    return !s->strategy->distinct || s->domain_choices[domain].have == 0;
}

void search_survey_domain(struct search *s, size_t domain, const struct pod_constraints *p)
{
    const struct domain *d = &s->domains[domain];
    struct choice *place = &s->domain_choices[domain];
    int64_t room = 0;
    place->take = 0;
    place->avoid = place->whole = true;
    for (size_t i = d->first; i < d->first + d->n; i++) {
        survey_node(s, i, p);
        room += s->node_choices[i].room;
        place->avoid &= s->node_choices[i].avoid;
        place->whole &= s->node_choices[i].whole;
    }
    if (!search_allows(s, domain))
        room = 0;
    place->room = s->strategy->distinct ? MIN(room, 1) : room;
}

void search_survey(struct search *s, const struct pod_constraints *p)
{
    for (size_t i = 0; i < s->n_domains; i++)
        search_survey_domain(s, i, p);
}

int64_t search_reach(const struct search *s, size_t *ret_domain)
{
    int64_t sum = 0, most = 0;
    *ret_domain = 0;
    for (size_t i = 0; i < s->n_domains; i++) {
        sum += s->domain_choices[i].room;
        if (s->domain_choices[i].room > most) {
            most = s->domain_choices[i].room;
            *ret_domain = i;
        }
    }
    return s->strategy->together ? most : sum;
}

static int64_t times(int64_t amount, int64_t n)
{
    int64_t product;
    return __builtin_mul_overflow(amount, n, &product) ? INT64_MAX : product;
}

static void take(struct search *s, struct search_node *node, const struct resources *requests, int64_t n)
{
    struct resources sum = {arena_memdup(s->arena, requests->items, requests->n * sizeof *requests->items),
                            requests->n};
    for (size_t i = 0; i < sum.n; i++)
        sum.items[i].milli = times(sum.items[i].milli, n);
    resources_add(&node->taken, &sum, s->arena);
}

void search_fill(struct search *s, size_t domain, struct shape *shape, int64_t n)
{
    const struct domain *d = &s->domains[domain];
    pick_fewest(&s->node_choices[d->first], d->n, n, s->arena);
    for (size_t i = d->first; i < d->first + d->n; i++) {
        struct choice *node = &s->node_choices[i];
        if (!node->take)
            continue;
        const char *name = arena_strdup(s->arena, s->nodes[i].room->name);
        for (int64_t k = 0; k < node->take; k++)
            s->answer[shape->bundles[shape->placed++]] = name;
        node->have += node->take;
        take(s, &s->nodes[i], &shape->constraints->requests, node->take);
    }
    s->domain_choices[domain].have += n;
}
