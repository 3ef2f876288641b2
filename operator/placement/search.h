// SPDX-License-Identifier: Apache-2.0
// The state while one gang is planned: the nodes grouped into domains, what the gang has on them, and what is free for
// the present shape. It lives in the arena of one planner_place().
#pragma once

#include "operator/api/pod_constraints.h"
#include "operator/placement/node_admission.h"
#include "operator/placement/pick.h"
#include "operator/placement/room.h"
#include "operator/placement/shape.h"
#include "operator/placement/victims.h"

// What a strategy requires of the domains of a gang. The planner knows nothing else about strategies. To add one, add a
// row to the table in search.c, and its name to operator/api/workergroup.h.
struct strategy_traits {
    bool together; // all bundles in one domain, or wait
    bool distinct; // no two bundles in one domain, or wait
    bool even;     // over as many domains as there are; else over as few as will do
};

// Why a node may be left out of a try.
enum site_mark {
    SITE_AVOID = 1, // the gang asks to keep off it
    SITE_GPU = 2,   // it has GPUs
    SITE_HELD = 32, // it is held for others
    // For the explanation:
    SITE_OUT = 4,       // could not take a bundle of this shape, whatever ran there
    SITE_SMALL = 8,     // likewise, because it is too small
    SITE_RULED_OUT = 16 // the strategy allows nothing there
};

// Pods of a node that may be counted as gone.
struct opening {
    size_t site;
    struct victims victims;
    size_t first;           // of the victims that are allowed for
    struct resources minus; // what those hold, with a minus
    bool open;              // they are counted as gone
    int64_t room_max;       // bundles, at most
    int64_t gain;           // bundles that go there only if it is open
    struct toll toll;       // for those
    size_t domain_toll;     // StrictPack: for the whole gang in that domain
};

struct site { // a node
    const struct room *room;
    unsigned marks;
    size_t domain;           // only while the sites are being sorted
    int64_t n_fixed;         // bundles of the gang that are there already
    struct resources fixed;  // their requests: part of what the room counts as used
    struct resources taken;  // by this search, beyond what the room counts; less what has gone
    struct opening *opening; // NULL: nothing may go
};

struct domain {
    const char *name;
    size_t first, n; // its sites
    int64_t n_fixed;
};

struct nearest {    // to holding a whole gang of several shapes
    int64_t placed; // bundles of it
    size_t domain;
};

struct search {
    const struct gang *gang;
    const struct strategy_traits *strategy; // its
    const char *topology_key;
    struct arena *arena;

    struct site *sites;   // sorted by domain, then node, in natural order; behind them those that are in no domain
    struct choice *nodes; // one a site that is in a domain
    size_t n_sites;
    struct domain *domains;
    struct choice *places; // one a domain. Its room is what the strategy lets it take
    size_t n_domains;

    struct shape *shapes;
    size_t n_shapes;
    int64_t n_wanted, n_fixed; // bundles to place; bundles of the gang that have their place
    const char **answer;       // a node for each bundle

    bool empty;       // plan as if no pod were there but those of the gang
    unsigned exclude; // sites with one of these marks take nothing

    size_t failed;          // the shape that could not be placed
    struct nearest nearest; // StrictPack of several shapes
};

void search_init(struct search *s, const struct cluster *c, const struct gang *g, struct arena *a);

// Forgets what was placed. To be called after `empty` was changed.
void search_reset(struct search *s);
void search_reset_domain(struct search *s, size_t domain);

// May the strategy put anything in that domain, given what the gang has already?
bool search_allows(const struct search *s, size_t domain);

// Works out the room of a domain, or of all of them, and of their nodes for bundles of one shape.
void search_survey_domain(struct search *s, size_t domain, const struct pod_constraints *p);
void search_survey(struct search *s, const struct pod_constraints *p);

// How many bundles of the surveyed shape the strategy could place. With StrictPack in the domain *ret_domain.
int64_t search_reach(const struct search *s, size_t *ret_domain);

// Places the next n bundles of the shape that the domain was surveyed for, on as few of its nodes as possible.
void search_fill(struct search *s, size_t domain, struct shape *shape, int64_t n);
