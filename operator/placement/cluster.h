// SPDX-License-Identifier: Apache-2.0
// What every node can take right now: allocatable, minus the requests of all pods that are bound or pinned to it and
// still run, minus the pods that we are about to create ("assumed"). It is updated event by event. An update costs O(1)
// and never rescans; only a new or removed node moves others in the sorted list. Pure: no I/O, no clock.
#pragma once

#include "common/base/list.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"

struct cluster;
struct room;

struct cluster *cluster_new(void);
void cluster_free(struct cluster *c); // NULL is fine

void cluster_set_node(struct cluster *c, const struct node *node); // new or changed; keeps a reference
void cluster_del_node(struct cluster *c, const char *name);
// The node was seen to fall silent, at that time of our own clock: its condition has the time of another one, which may
// be far from ours. Forgotten when it is ready again.
void cluster_note_silence(struct cluster *c, const char *name, int64_t since_ms);
// The API server was away until then. Kubelets could not report to it, and Kubernetes calls their nodes not ready until
// they do: no node counts as silent before CLUSTER_REPORT_MS after that.
enum { CLUSTER_REPORT_MS = 40 * 1000 }; // Kubernetes' own patience with a node (node-monitor-grace-period)
void cluster_note_outage(struct cluster *c, int64_t until_ms);
// Our own clock was moved, and what was noted moves with it.
void cluster_clock_moved(struct cluster *c, int64_t ms);

// A pod as watched: replaces what was known or assumed under its name; keeps a reference. A pod pinned but not bound
// counts on its pin. A pod on a node that is not there (yet) is remembered. A terminal pod counts nowhere, one that is
// being deleted still counts.
void cluster_set_pod(struct cluster *c, const struct pod *pod);
void cluster_del_pod(struct cluster *c, const char *ns, const char *name);

// A pod that is being created, until the watch shows it (cluster_set_pod) or its creation failed (cluster_unassume).
// What the watch has shown already wins over both.
void cluster_assume(struct cluster *c, const char *ns, const char *name, const char *node,
                    const struct resources *requests);
void cluster_unassume(struct cluster *c, const char *ns, const char *name);

// Grows whenever room may have appeared (a pod gone or smaller, a node new or changed in what the planner looks at) and
// when a node goes, which changes why there is none: what waits should be planned again.
uint64_t cluster_epoch(const struct cluster *c);

size_t cluster_nodes(const struct cluster *c);
const struct node *cluster_node(const struct cluster *c, const char *name); // NULL if there is none; borrowed
int64_t cluster_silent_ms(const struct cluster *c, const char *name);       // since then; of a node that is not ready
// The node is not ready, and has had the time to report. *ret_ms: how much of that time is left, if there is some.
bool cluster_silent(const struct cluster *c, const char *name, int64_t now_ms, int64_t *ret_ms);
int64_t cluster_used(const struct cluster *c, const char *node, int resource_id); // for tests and metrics

// An object whose pods take room.
struct holder {
    const char *kind, *ns, *name;
    struct list occupants; // struct occupant, by `of_holder`
};
// The next one, in no order: *i is 0 at first. NULL at the end. Borrowed; valid until the next change.
const struct holder *cluster_next_holder(const struct cluster *c, size_t *i);

// No pod that takes room has a lower one. INT32_MAX: there was no pod yet.
int32_t cluster_lowest_priority(const struct cluster *c);

// The nodes that are there, cluster_nodes() of them, by name in natural order; and the one of that name, NULL if there
// is none. Valid until the next change.
const struct room *const *cluster_rooms(const struct cluster *c);
const struct room *cluster_room(const struct cluster *c, const char *name);
