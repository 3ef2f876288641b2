// SPDX-License-Identifier: Apache-2.0
// The room of one node: its allocatable amounts minus the requests of the pods on it. It exists before its node if a
// pod is seen first, and after its node as long as pods are still there.
#pragma once

#include "common/base/list.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"

// A pod that takes room. A pod from the watch shares its requests with the object that the store has anyway. An assumed
// pod has a copy behind this struct.
struct occupant {
    struct list link;     // in the room
    struct list of_owner; // in the owner (cluster.h); linked to itself if the pod has no owner of ours
    struct list unbound;  // in the room, if the pod is pinned but not bound; else linked to itself
    struct room *room;
    const struct pod *pod; // a reference; NULL = assumed: we create it, and have not seen it yet
    struct resources requests;
    bool ours;    // a pod of a gang, which may wait until others are evicted for it
    bool counted; // it is among the occupants
    bool was_counted;
};

struct room {
    char *name;              // of the node
    const struct node *node; // a reference; NULL = the node does not exist (yet)
    int64_t silent_ms;       // when it was seen to become not ready; 0 = only its condition says so
    size_t number;           // among the nodes that exist, in natural order
    struct list occupants;   // struct occupant: the pods counted here
    struct list unbound;     // struct occupant: the pods that are pinned but not bound, counted or not, as they came
    // Allocatable minus used, by resource id. Beyond n_free nothing is known, so it is 0. Wider than an amount: sums of
    // saturated amounts stay exact, so taking an amount and giving it back leaves no trace.
    __int128 *free;
    size_t n_free;
};

struct room *room_new(const char *name);
void room_free(struct room *r);

void room_set_node(struct room *r, const struct node *node); // NULL = the node is gone
void room_take(struct room *r, struct occupant *t);          // t moves in
// t has moved in, and stands for the same pod as `old`, which moves out next. An update of a pinned pod must not change
// which of several pods counts. If t does not count although `old` did, room_settle() says that room appeared.
void room_succeed(struct room *r, struct occupant *old, struct occupant *t);
void room_give(struct room *r, struct occupant *t); // t moves out, and belongs to the caller again
// Call this after changes. Counts the unbound pods that kube-scheduler could bind now, and no others: a pod of a gang
// has to fit into the empty node, any other pod beside all that are counted. Otherwise a pod that nobody can ever bind
// would take room. Returns true if room appeared.
bool room_settle(struct room *r);

int64_t room_used(const struct room *r, int resource_id); // saturated

// The amount of a resource that is left beside `taken`. With `empty`, as if no pod were there. Saturated.
int64_t room_left(const struct room *r, bool empty, const struct resources *taken, int resource_id);

// The number of times that `requests` fit into the rest. At most ROOM_FIT_MAX, so that sums over any cluster do not
// overflow. The node must exist.
enum { ROOM_FIT_MAX = INT32_MAX };
int64_t room_fit(const struct room *r, bool empty, const struct resources *taken, const struct resources *requests);
