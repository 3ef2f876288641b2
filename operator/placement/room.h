// SPDX-License-Identifier: Apache-2.0
// The room of one node: its allocatable amounts minus the requests of the pods on it. It exists before its node if a
// pod is seen first, and after its node while pods are still there.
#pragma once

#include "common/base/list.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"

// A pod that takes room. A watched one shares its requests with the object that the store holds anyway; an assumed one
// carries a copy behind itself.
struct occupant {
    struct list link;      // of the room
    struct list of_holder; // of the object that owns it (cluster.h); of its own, if none of ours does
    struct room *room;
    const struct pod *pod; // a reference; NULL = assumed: of our own making, and not seen yet
    struct resources requests;
};

struct room {
    char *name;              // of the node
    const struct node *node; // a reference; NULL = the node is not there (yet)
    int64_t silent_ms;       // since when it was seen not to be ready; 0 = only its condition says so
    size_t number;           // among the nodes that are there, in natural order
    struct list occupants;   // struct occupant, counted here
    // Allocatable minus used, by resource id; behind n_free nothing is known, hence 0. Wider than an amount: sums of
    // saturated amounts stay exact, so that what is taken and given back leaves no trace.
    __int128 *free;
    size_t n_free;
};

struct room *room_new(const char *name);
void room_free(struct room *r);

void room_set_node(struct room *r, const struct node *node); // NULL = it is gone
void room_take(struct room *r, struct occupant *t);          // which moves in
void room_give(struct room *r, struct occupant *t);          // which moves out; it is the caller's again

int64_t room_used(const struct room *r, int resource_id); // saturated

// What is left of a resource beside `taken`, as if no pod were there when `empty`. Saturated.
int64_t room_left(const struct room *r, bool empty, const struct resources *taken, int resource_id);

// How often `requests` fit into that. At most ROOM_FIT_MAX, which leaves headroom for sums over any cluster. The node
// must be there.
enum { ROOM_FIT_MAX = INT32_MAX };
int64_t room_fit(const struct room *r, bool empty, const struct resources *taken, const struct resources *requests);
