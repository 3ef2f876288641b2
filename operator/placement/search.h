// SPDX-License-Identifier: Apache-2.0
// The state while one gang is planned: the nodes grouped into domains, the bundles that the gang has on them, and the
// free room for the present shape. It lives in the arena of one planner_place().
#pragma once

#include "operator/api/pod_constraints.h"
#include "operator/placement/node_admission.h"
#include "operator/placement/pick.h"
#include "operator/placement/room.h"
#include "operator/placement/shape.h"
#include "operator/placement/victims.h"

// The requirements of a strategy on the domains of a gang. The planner knows nothing else about strategies. To add one,
// add a row to the table in search.c, its value to operator/api/workergroup.h, and its name to workergroup.c there.
struct strategy_traits {
    bool together; // all bundles in one domain, or wait
    bool distinct; // no two bundles in one domain, or wait
    bool even;     // over as many domains as possible; otherwise over as few as possible
};

// The reasons why a try may leave out a node.
enum node_mark {
    MARK_AVOID = 1, // the gang asks to avoid it
    MARK_GPU = 2,   // it has GPUs
    MARK_HELD = 32, // it is held for others
    // For the explanation:
    MARK_OUT = 4,       // it could not take a bundle of this shape, whatever ran there
    MARK_SMALL = 8,     // the same, because it is too small
    MARK_RULED_OUT = 16 // the strategy allows nothing there
};

// A node whose pods may be evicted, as in kube-scheduler. Preemption tries which candidates it needs.
struct candidate {
    size_t node;
    struct victims victims;
    size_t first;             // the first victim that may go
    struct resources minus;   // the requests of the victims that may go, as negative amounts
    bool gone;                // these victims count as gone
    int64_t room_max;         // bundles that the node then takes, at most
    int64_t gain;             // more bundles that fit there if the victims are gone
    struct victims_cost cost; // for these bundles
    size_t domain_cost;       // StrictPack: for the whole gang in that domain
};

struct search_node { // a node, and what the search knows about it
    const struct room *room;
    unsigned marks;
    size_t domain;               // only while the nodes are being sorted
    int64_t n_fixed;             // bundles of the gang that are already there
    struct resources fixed;      // their requests, which the room counts as used
    struct resources taken;      // taken by this search beyond what the room counts, minus the pods that count as gone
    struct candidate *candidate; // NULL = no pod may be evicted there
};

struct domain {
    const char *name;
    size_t first, n; // its nodes
    int64_t n_fixed;
};

struct nearest {    // the try that came nearest to placing a whole gang of several shapes
    int64_t placed; // bundles of the gang
    size_t domain;
};

struct search {
    const struct gang *gang;
    const struct strategy_traits *strategy; // of the gang
    const char *topology_key;
    struct arena *arena;

    struct search_node *nodes;   // sorted by domain, then node, in natural order; nodes in no domain come last
    struct choice *node_choices; // one per node
    size_t n_nodes;
    struct domain *domains;
    struct choice *domain_choices; // one per domain. Its room is the number of bundles that the strategy allows there
    size_t n_domains;

    struct shape *shapes;
    size_t n_shapes;
    int64_t n_wanted, n_fixed; // bundles to place; bundles of the gang that already have a node
    const char **answer;       // a node for each bundle

    bool empty;       // plan as if there were no pods except the gang's own
    unsigned exclude; // nodes with one of these marks take nothing

    size_t failed;          // the shape that could not be placed
    struct nearest nearest; // StrictPack of several shapes
};

void search_init(struct search *s, const struct cluster *c, const struct gang *g, struct arena *a);

// Forgets what was placed. Call this after a change of `empty`.
void search_reset(struct search *s);
void search_reset_domain(struct search *s, size_t domain);

// Returns true if the strategy may put something into this domain, given what the gang has already.
bool search_allows(const struct search *s, size_t domain);

// Computes the room of one domain or all domains, and of their nodes, for bundles of one shape.
void search_survey_domain(struct search *s, size_t domain, const struct pod_constraints *p);
void search_survey(struct search *s, const struct pod_constraints *p);

// The number of bundles of the surveyed shape that the strategy could place. With StrictPack, all of them in domain
// *ret_domain.
int64_t search_reach(const struct search *s, size_t *ret_domain);

// Places the next n bundles of the shape for which the domain was surveyed, on as few of its nodes as possible.
void search_fill(struct search *s, size_t domain, struct shape *shape, int64_t n);
