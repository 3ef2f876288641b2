// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/explanation.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod_constraints.h"
#include "operator/api/quantity.h"

#include <inttypes.h>
#include <string.h>

enum { CAUSE_FULL = NODE_TAINTED + 1, CAUSE_HELD, CAUSE_RULED_OUT, CAUSE_COUNT };

struct node_counts { // of all nodes, for one shape
    size_t with_room;
    size_t without[CAUSE_COUNT]; // by enum node_verdict, then full, held for others, excluded by the strategy
};

struct shortage {
    struct resource resource; // the resource that is short; milli 0: only all of them together are
    int64_t reach;            // bundles that can be placed
    size_t domain;            // StrictPack: in this domain
};

static bool is_hostname(const struct search *s)
{
    return strcmp(s->topology_key, TOPOLOGY_HOSTNAME) == 0;
}

static bool is_held(const struct search *s, const struct search_node *node, const struct pod_constraints *p)
{
    return (node->marks & s->exclude & MARK_HELD) && room_fit(node->room, s->empty, &node->taken, &p->requests) > 0;
}

// From here on, the nodes that could not take a bundle are left out, whatever runs there. If these are all nodes, the
// nodes that are only too small stay in, because their resources are short.
static struct node_counts count_nodes(struct search *s, const struct pod_constraints *p)
{
    struct node_counts c = {0};
    for (size_t d = 0; d < s->n_domains; d++)
        for (size_t i = 0; i < s->domains[d].n && !search_allows(s, d); i++)
            s->nodes[s->domains[d].first + i].marks |= MARK_RULED_OUT;
    bool any = false;
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct search_node *node = &s->nodes[i];
        enum node_verdict v = node_admits(node->room->node, p, s->topology_key);
        if (v != NODE_OK) {
            c.without[v]++;
            node->marks |= v == NODE_TOO_SMALL ? MARK_SMALL : MARK_OUT;
            continue;
        }
        any = true;
        if (node->marks & MARK_RULED_OUT)
            c.without[CAUSE_RULED_OUT]++;
        else if (s->node_choices[i].room == 0)
            c.without[is_held(s, node, p) ? CAUSE_HELD : CAUSE_FULL]++;
        else
            c.with_room++;
    }
    s->exclude = (s->exclude & MARK_HELD) | MARK_OUT | MARK_RULED_OUT | (any ? MARK_SMALL : 0);
    return c;
}

static void try_alone(struct search *s, const struct shape *shape, struct resource *what, int64_t *least,
                      struct shortage *ret)
{
    struct pod_constraints alone = *shape->constraints;
    size_t unused;
    alone.requests = (struct resources){what, 1};
    search_survey(s, &alone);
    int64_t reach = search_reach(s, &unused);
    if (reach >= *least)
        return;
    *least = reach;
    ret->resource = *what;
}

// Finds the resource that is short: the one that would allow the fewest bundles if only that resource counted.
static struct shortage find_shortage(struct search *s, const struct shape *shape)
{
    const struct resources *all = &shape->constraints->requests;
    struct shortage r = {0};
    r.reach = search_reach(s, &r.domain);
    int64_t least = shape->n;
    for (size_t i = all->n; i-- > 0;) // GPUs and the like, last in the list, win a tie
        if (all->items[i].id != RESOURCE_PODS)
            try_alone(s, shape, &all->items[i], &least, &r);
    for (size_t i = 0; i < all->n; i++) // pod slots, which nobody has asked for
        if (all->items[i].id == RESOURCE_PODS)
            try_alone(s, shape, &all->items[i], &least, &r);
    return r;
}

static const char *amount(const struct resource *r, const char *word, struct arena *a)
{
    bool one = r->milli <= 1000;
    if (r->id == RESOURCE_PODS && r->milli < 1000) // bundles that share a pod
        return arena_printf(a, "1 %spod slot", word);
    const char *name = r->id != RESOURCE_PODS ? resource_name(r->id) : one ? "pod slot" : "pod slots";
    return arena_printf(a, "%s %s%s", quantity_format(r->id, r->milli, a), word, name);
}

// "8 free nvidia.com/gpu", or "(8 nvidia.com/gpu, 32 cpu, 64Gi memory)" if no single resource is short.
static const char *bundle_text(const struct search *s, const struct shape *shape, const struct shortage *sh)
{
    enum { MOST = 5 };
    const struct resources *all = &shape->constraints->requests;
    if (sh->resource.milli)
        return amount(&sh->resource, s->empty ? "" : "free ", s->arena);
    const char *text = "";
    for (size_t i = all->n; i-- > 0 && all->n - i <= MOST;)
        if (all->items[i].id != RESOURCE_PODS) // every pod needs a slot, so it is not mentioned
            text = arena_printf(s->arena, "%s%s%s", text, *text ? ", " : "", amount(&all->items[i], "", s->arena));
    return arena_printf(s->arena, "(%s%s)", text, all->n > MOST ? ", ..." : "");
}

// " on one node", " in one example.com/rack", " on n2" if the other bundles are there, " on 3 different nodes", " in 2
// more values of example.com/rack"; "" if any place will do.
static const char *where_text(const struct search *s, int64_t n)
{
    const char *in = is_hostname(s) ? "on" : "in";
    const char *one = is_hostname(s) ? "node" : s->topology_key;
    if (s->strategy->together) {
        for (size_t i = 0; s->n_fixed && i < s->n_domains; i++)
            if (search_allows(s, i))
                return arena_printf(s->arena, " %s %s", in, s->domains[i].name);
        return arena_printf(s->arena, " %s one %s%s", in, one, s->n_fixed ? " with the rest" : "");
    }
    if (!s->strategy->distinct)
        return "";
    const char *more = s->n_fixed ? " more" : n > 1 ? " different" : "";
    if (n == 1)
        return arena_printf(s->arena, " %s one%s %s", in, more, one);
    return arena_printf(s->arena, " %s %" PRId64 "%s %s%s", in, n, more, is_hostname(s) ? "nodes" : "values of ",
                        is_hostname(s) ? "" : s->topology_key);
}

// A resource with a typing error in its name, or a device plugin that does not run.
static bool is_nowhere(const struct search *s, int id)
{
    for (size_t i = 0; i < s->n_nodes; i++)
        if (resources_get(&s->nodes[i].room->node->allocatable, id) > 0)
            return false;
    return true;
}

// The node with most of the resource that is short, if that is less than `below` (0: any). NULL: no node has any.
static const char *find_nearest(const struct search *s, const struct resource *what, int64_t below, int64_t *ret_has)
{
    const char *name = NULL;
    *ret_has = 0;
    for (size_t i = 0; what->milli && i < s->n_nodes; i++) {
        const struct search_node *node = &s->nodes[i];
        int64_t has = room_left(node->room, s->empty, &node->taken, what->id);
        if (node->marks & s->exclude || has <= *ret_has || (below && has >= below))
            continue;
        *ret_has = has;
        name = node->room->name;
    }
    return name;
}

// " (n3 is nearest with 7)"
static const char *nearest_text(const struct search *s, const struct resource *what)
{
    int64_t has;
    const char *name = find_nearest(s, what, 0, &has);
    if (name)
        return arena_printf(s->arena, " (%s is nearest with %s)", name, quantity_format(what->id, has, s->arena));
    return what->milli && s->empty && s->n_nodes && is_nowhere(s, what->id) ? " (no node has any)" : "";
}

static const char *reach_text(const struct search *s, const struct shortage *sh)
{
    const char *at = "";
    if (!sh->reach)
        return arena_printf(s->arena, "%s%s", s->empty ? "none fits" : "found none", nearest_text(s, &sh->resource));
    if (s->strategy->together)
        at = arena_printf(s->arena, " %s %s", is_hostname(s) ? "on" : "in", s->domains[sh->domain].name);
    if (!s->empty)
        return arena_printf(s->arena, "found %" PRId64 "%s", sh->reach, at);
    return arena_printf(s->arena, "at most %" PRId64 " %s%s", sh->reach, sh->reach == 1 ? "fits" : "fit", at);
}

// "15 of 18 nodes have room (2 full, 1 cordoned)"
static const char *counts_text(const struct search *s, const struct node_counts *c)
{
    const char *const words[CAUSE_COUNT] = {
        [CAUSE_FULL] = "full",
        [CAUSE_HELD] = "held for others",
        [CAUSE_RULED_OUT] = s->strategy->together ? "elsewhere" : "with a bundle already",
        [NODE_TOO_SMALL] = "too small",
        [NODE_CORDONED] = "cordoned",
        [NODE_NOT_READY] = "not ready",
        [NODE_TAINTED] = "tainted",
        [NODE_UNMATCHED] = "not selected",
        [NODE_NO_DOMAIN] = arena_printf(s->arena, "without %s", s->topology_key),
    };
    static const int order[] = {CAUSE_FULL,     CAUSE_HELD,   CAUSE_RULED_OUT, NODE_TOO_SMALL, NODE_CORDONED,
                                NODE_NOT_READY, NODE_TAINTED, NODE_UNMATCHED,  NODE_NO_DOMAIN};
    if (!s->n_nodes)
        return "the cluster has no nodes";
    const char *rest = "";
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (c->without[order[i]])
            rest = arena_printf(s->arena, "%s, %zu %s", rest, c->without[order[i]], words[order[i]]);
    bool one = c->with_room == 1 || s->n_nodes == 1;
    const char *verb = s->empty ? (one ? "qualifies" : "qualify") : (one ? "has room" : "have room");
    const char *counts =
        arena_printf(s->arena, "%zu of %zu node%s %s", c->with_room, s->n_nodes, s->n_nodes == 1 ? "" : "s", verb);
    return *rest ? arena_printf(s->arena, "%s (%s)", counts, rest + strlen(", ")) : counts;
}

// "needs", or with several shapes "bundles 4-7 need".
static const char *who_text(const struct search *s, const struct shape *shape)
{
    if (s->n_shapes == 1)
        return "needs";
    const char *which = shape_indexes(shape, s->arena);
    return shape->n == 1 ? arena_printf(s->arena, "bundle %s needs", which)
                         : arena_printf(s->arena, "bundles %s need", which);
}

// "nearest: n7 with 6 of 8 free nvidia.com/gpu": of the nodes that qualify but cannot take a bundle, the one with most
// of the resource that is short.
static const char *nearest_line(const struct search *s, const struct shortage *sh)
{
    int64_t has;
    const struct resource *what = &sh->resource;
    const char *name = find_nearest(s, what, what->milli, &has);
    if (!name || !sh->reach) // then the message says it already
        return "";
    return arena_printf(s->arena, "nearest: %s with %s of %s\n", name, quantity_format(what->id, has, s->arena),
                        amount(what, s->empty ? "" : "free ", s->arena));
}

struct usage { // of the resource that is short, on the nodes that qualify
    int64_t all, used;
};

// Returns a list by the numbers of nodes: true if the node qualifies.
static const bool *find_qualified(const struct search *s, const struct shape *shape)
{
    bool *qualified = arena_array(s->arena, s->n_nodes, sizeof *qualified);
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct room *r = s->nodes[i].room;
        qualified[r->number] = node_admits(r->node, shape->constraints, s->topology_key) == NODE_OK;
    }
    return qualified;
}

static struct usage usage_of(const struct search *s, const bool *qualified, int id)
{
    struct usage u = {0};
    for (size_t i = 0; i < s->n_nodes; i++) {
        if (!qualified[s->nodes[i].room->number])
            continue;
        u.all = amount_add(u.all, resources_get(&s->nodes[i].room->node->allocatable, id));
        u.used = amount_add(u.used, room_used(s->nodes[i].room, id));
    }
    return u;
}

struct consumer {
    const struct pod_owner *owner;
    int64_t amount;
};

static int64_t amount_of(const struct pod_owner *o, const bool *qualified, int id)
{
    int64_t sum = 0;
    LIST_FOREACH(l, &o->occupants) {
        const struct occupant *t = CONTAINER_OF(l, struct occupant, of_owner);
        if (t->counted && t->room->node && qualified[t->room->number])
            sum = amount_add(sum, resources_get(&t->requests, id));
    }
    return sum;
}

static bool is_before(const struct consumer *a, const struct consumer *b)
{
    if (a->amount != b->amount)
        return a->amount > b->amount;
    int r = str_cmp(a->owner->ns, b->owner->ns);
    return (r ? r : str_cmp(a->owner->name, b->owner->name)) < 0;
}

enum { CONSUMERS = 3 };

// The owners that use most of this resource.
static size_t most_of(const struct cluster *c, const bool *qualified, int id, struct consumer top[CONSUMERS])
{
    size_t n = 0;
    const struct pod_owner *o;
    for (size_t i = 0; (o = cluster_next_owner(c, &i));) {
        struct consumer u = {o, amount_of(o, qualified, id)};
        if (u.amount <= 0)
            continue;
        if (n < CONSUMERS)
            top[n++] = u;
        else if (is_before(&u, &top[n - 1]))
            top[n - 1] = u;
        for (size_t k = n - 1; k > 0 && is_before(&top[k], &top[k - 1]); k--) {
            struct consumer other = top[k];
            top[k] = top[k - 1];
            top[k - 1] = other;
        }
    }
    return n;
}

// "in use there: 32 of 40 nvidia.com/gpu, 16 by WorkerGroup ml/llama, 16 by others"
static const char *use_line(const struct search *s, const struct cluster *c, const struct shape *shape,
                            const struct resource *what)
{
    struct consumer top[CONSUMERS];
    if (s->empty || !what->milli)
        return "";
    const bool *qualified = find_qualified(s, shape);
    struct usage u = usage_of(s, qualified, what->id);
    if (u.used <= 0)
        return "";
    size_t n = most_of(c, qualified, what->id, top);
    const char *text = arena_printf(s->arena, "in use there: %s of %s", quantity_format(what->id, u.used, s->arena),
                                    amount(&(struct resource){what->id, u.all}, "", s->arena));
    for (size_t i = 0; i < n; i++) {
        const struct pod_owner *o = top[i].owner;
        u.used -= top[i].amount;
        text = arena_printf(s->arena, "%s, %s by %s %s/%s", text, quantity_format(what->id, top[i].amount, s->arena),
                            o->kind, o->ns, o->name);
    }
    return u.used > 0 ? arena_printf(s->arena, "%s, %s by others\n", text, quantity_format(what->id, u.used, s->arena))
                      : arena_printf(s->arena, "%s\n", text);
}

void explain(struct search *s, const struct cluster *c, struct explanation *ret)
{
    const struct shape *shape = &s->shapes[s->failed];
    search_survey(s, shape->constraints);
    struct node_counts counts = count_nodes(s, shape->constraints);
    const char *nodes = counts_text(s, &counts);
    *ret = (struct explanation){.short_of = -1};
    if (s->n_shapes > 1 && s->strategy->together) { // any of the shapes may be too much
        struct shortage all = {.reach = s->nearest.placed, .domain = s->nearest.domain};
        ret->message = arena_printf(s->arena, "needs %" PRId64 " bundles%s, %s; %s", s->n_wanted,
                                    where_text(s, s->n_wanted), reach_text(s, &all), nodes);
        return;
    }
    struct shortage sh = find_shortage(s, shape);
    ret->message = arena_printf(s->arena, "%s %" PRId64 " x %s%s, %s; %s", who_text(s, shape), shape->n,
                                bundle_text(s, shape, &sh), where_text(s, shape->n), reach_text(s, &sh), nodes);
    const char *details = arena_printf(s->arena, "%s%s", nearest_line(s, &sh), use_line(s, c, shape, &sh.resource));
    ret->details = *details ? arena_strndup(s->arena, details, strlen(details) - 1) : NULL;
    if (sh.resource.milli)
        ret->short_of = sh.resource.id;
}
