// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/explain.h"

#include "common/base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { CAUSE_FULL = NODE_TAINTED + 1, CAUSE_RULED_OUT, CAUSE_COUNT };

struct census { // of all nodes, for one shape
    size_t with_room;
    size_t without[CAUSE_COUNT]; // by enum node_verdict, CAUSE_FULL, or by what the gang has already: CAUSE_RULED_OUT
};

struct shortage {
    struct resource resource; // the one that is short; milli 0: only all of them together are
    int64_t reach;            // bundles that can be placed
    size_t domain;            // StrictPack: there
};

static bool is_hostname(const struct search *s)
{
    return strcmp(s->topology_key, TOPOLOGY_HOSTNAME) == 0;
}

// Also leaves out from here on what could not take a bundle whatever ran there. Where that would be every node, those
// that are only too small stay in: their resources are then what is short.
static struct census take_census(struct search *s, const struct pod_constraints *p)
{
    struct census c = {0};
    for (size_t d = 0; d < s->n_domains; d++)
        for (size_t i = 0; i < s->domains[d].n && !search_allows(s, d); i++)
            s->sites[s->domains[d].first + i].marks |= SITE_RULED_OUT;
    bool any = false;
    for (size_t i = 0; i < s->n_sites; i++) {
        struct site *site = &s->sites[i];
        enum node_verdict v = node_admits(site->room->node, p, s->topology_key);
        if (v != NODE_OK) {
            c.without[v]++;
            site->marks |= v == NODE_TOO_SMALL ? SITE_SMALL : SITE_OUT;
            continue;
        }
        any = true;
        if (site->marks & SITE_RULED_OUT)
            c.without[CAUSE_RULED_OUT]++;
        else if (!s->nodes[i].room)
            c.without[CAUSE_FULL]++;
        else
            c.with_room++;
    }
    s->exclude = SITE_OUT | SITE_RULED_OUT | (any ? SITE_SMALL : 0);
    return c;
}

// The shortage is that of the resource which alone, if the others did not matter, would let through the least.
static struct shortage find_shortage(struct search *s, const struct shape *shape)
{
    const struct resources *all = &shape->constraints->requests;
    struct shortage r = {0};
    r.reach = search_reach(s, &r.domain);
    int64_t least = shape->n;
    for (size_t i = all->n; i-- > 0;) { // GPUs and the like, last in the list, win a tie
        struct pod_constraints alone = *shape->constraints;
        alone.requests = (struct resources){&all->items[i], 1};
        search_survey(s, &alone);
        size_t unused;
        int64_t reach = search_reach(s, &unused);
        if (reach < least) {
            least = reach;
            r.resource = all->items[i];
        }
    }
    return r;
}

static const char *amount(const struct resource *r, const char *word, struct arena *a)
{
    const char *name = r->id == RESOURCE_PODS ? "pod slot" : resource_name(r->id);
    return arena_printf(a, "%s %s%s", quantity_format(r->id, r->milli, a), word, name);
}

// "8 free nvidia.com/gpu", or "(8 nvidia.com/gpu, 32 cpu, 64Gi memory)" where no single resource is to blame.
static const char *bundle_text(const struct search *s, const struct shape *shape, const struct shortage *sh)
{
    enum { MOST = 5 };
    const struct resources *all = &shape->constraints->requests;
    if (sh->resource.milli)
        return amount(&sh->resource, s->empty ? "" : "free ", s->arena);
    const char *text = "";
    for (size_t i = all->n; i-- > 0 && all->n - i <= MOST;)
        if (all->items[i].id != RESOURCE_PODS) // goes without saying
            text = arena_printf(s->arena, "%s%s%s", text, *text ? ", " : "", amount(&all->items[i], "", s->arena));
    return arena_printf(s->arena, "(%s%s)", text, all->n > MOST ? ", ..." : "");
}

// " on one node", " in one example.com/rack", " on n2" where the others are, " on 3 different nodes",
// " in 2 more values of example.com/rack"; "" where any place will do.
static const char *where_text(const struct search *s, int64_t n)
{
    const char *in = is_hostname(s) ? "on" : "in";
    const char *one = is_hostname(s) ? "node" : s->topology_key;
    if (s->gang->strategy == STRATEGY_STRICT_PACK) {
        for (size_t i = 0; s->n_fixed && i < s->n_domains; i++)
            if (search_allows(s, i))
                return arena_printf(s->arena, " %s %s", in, s->domains[i].name);
        return arena_printf(s->arena, " %s one %s%s", in, one, s->n_fixed ? " with the rest" : "");
    }
    if (s->gang->strategy != STRATEGY_STRICT_SPREAD)
        return "";
    const char *more = s->n_fixed ? " more" : n > 1 ? " different" : "";
    if (n == 1)
        return arena_printf(s->arena, " %s one%s %s", in, more, one);
    return arena_printf(s->arena, " %s %" PRId64 "%s %s%s", in, n, more, is_hostname(s) ? "nodes" : "values of ",
                        is_hostname(s) ? "" : s->topology_key);
}

// " (n3 is nearest with 7)": the node that has most of what is short, if any has some.
static const char *nearest_text(const struct search *s, const struct resource *what)
{
    const char *name = NULL;
    int64_t most = 0;
    for (size_t i = 0; what->milli && i < s->n_sites; i++) {
        const struct site *site = &s->sites[i];
        int64_t has = room_left(site->room, s->empty, &site->taken, what->id);
        if (!(site->marks & s->exclude) && has > most) {
            most = has;
            name = site->room->name;
        }
    }
    return name ? arena_printf(s->arena, " (%s is nearest with %s)", name, quantity_format(what->id, most, s->arena))
                : "";
}

static const char *reach_text(const struct search *s, const struct shortage *sh)
{
    const char *at = "";
    if (!sh->reach)
        return arena_printf(s->arena, "%s%s", s->empty ? "none fits" : "found none", nearest_text(s, &sh->resource));
    if (s->gang->strategy == STRATEGY_STRICT_PACK)
        at = arena_printf(s->arena, " %s %s", is_hostname(s) ? "on" : "in", s->domains[sh->domain].name);
    if (!s->empty)
        return arena_printf(s->arena, "found %" PRId64 "%s", sh->reach, at);
    return arena_printf(s->arena, "at most %" PRId64 " %s%s", sh->reach, sh->reach == 1 ? "fits" : "fit", at);
}

// "15 of 18 nodes have room (2 full, 1 cordoned)"
static const char *census_text(const struct search *s, const struct census *c)
{
    const char *const words[CAUSE_COUNT] = {
        [CAUSE_FULL] = "full",
        [CAUSE_RULED_OUT] = s->gang->strategy == STRATEGY_STRICT_PACK ? "elsewhere" : "with a bundle already",
        [NODE_TOO_SMALL] = "too small",
        [NODE_CORDONED] = "cordoned",
        [NODE_NOT_READY] = "not ready",
        [NODE_TAINTED] = "tainted",
        [NODE_UNMATCHED] = "not selected",
        [NODE_NO_DOMAIN] = arena_printf(s->arena, "without %s", s->topology_key),
    };
    static const int order[] = {CAUSE_FULL,     CAUSE_RULED_OUT, NODE_TOO_SMALL, NODE_CORDONED,
                                NODE_NOT_READY, NODE_TAINTED,    NODE_UNMATCHED, NODE_NO_DOMAIN};
    if (!s->n_sites)
        return "the cluster has no nodes";
    const char *rest = "";
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (c->without[order[i]])
            rest = arena_printf(s->arena, "%s, %zu %s", rest, c->without[order[i]], words[order[i]]);
    bool one = c->with_room == 1 || s->n_sites == 1;
    const char *verb = s->empty ? (one ? "qualifies" : "qualify") : (one ? "has room" : "have room");
    const char *counts =
        arena_printf(s->arena, "%zu of %zu node%s %s", c->with_room, s->n_sites, s->n_sites == 1 ? "" : "s", verb);
    return *rest ? arena_printf(s->arena, "%s (%s)", counts, rest + strlen(", ")) : counts;
}

// "needs", or with several shapes whose need it is: "bundles 4-7 need".
static const char *who_text(const struct search *s, const struct shape *shape)
{
    if (s->n_shapes == 1)
        return "needs";
    const char *which = shape_indexes(shape, s->arena);
    return shape->n == 1 ? arena_printf(s->arena, "bundle %s needs", which)
                         : arena_printf(s->arena, "bundles %s need", which);
}

const char *explain(struct search *s)
{
    const struct shape *shape = &s->shapes[s->failed];
    search_survey(s, shape->constraints);
    struct census c = take_census(s, shape->constraints);
    const char *nodes = census_text(s, &c);
    if (s->n_shapes > 1 && s->gang->strategy == STRATEGY_STRICT_PACK) { // any of the shapes may be too much
        struct shortage all = {.reach = s->nearest.placed, .domain = s->nearest.domain};
        return arena_printf(s->arena, "needs %" PRId64 " bundles%s, %s; %s", s->n_wanted, where_text(s, s->n_wanted),
                            reach_text(s, &all), nodes);
    }
    struct shortage sh = find_shortage(s, shape);
    return arena_printf(s->arena, "%s %" PRId64 " x %s%s, %s; %s", who_text(s, shape), shape->n,
                        bundle_text(s, shape, &sh), where_text(s, shape->n), reach_text(s, &sh), nodes);
}
