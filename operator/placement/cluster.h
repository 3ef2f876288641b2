// SPDX-License-Identifier: Apache-2.0
// The free room of every node right now: allocatable, minus the requests of all pods that are bound or pinned to it and
// still run, minus the pods that we are about to create ("assumed"). It is updated event by event. An update costs O(1)
// and never counts all of it again. Only a new or removed node moves others in the sorted list. Pure: no I/O, no clock.
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
// The node was seen to fall silent at this time of our own clock. The time in its condition comes from another clock,
// which may differ a lot. The note is forgotten when the node is ready again.
void cluster_note_silence(struct cluster *c, const char *name, int64_t since_ms);
// The API server was away at this time. Kubelets could not report to it, so Kubernetes calls their nodes not ready
// until they report again. No node counts as silent before CLUSTER_REPORT_MS after the outage. A single request that
// fails is not an outage: shorter ones than CLUSTER_OUTAGE_MS make no node not ready.
enum {
    CLUSTER_REPORT_MS = 40 * 1000, // the time that Kubernetes itself gives a node (node-monitor-grace-period)
    CLUSTER_OUTAGE_MS = 5000,
};
void cluster_note_outage(struct cluster *c, int64_t from_ms, int64_t until_ms);
// Somebody set our own clock by this much: the noted times move with it.
void cluster_clock_moved(struct cluster *c, int64_t ms);

// A pod from the watch. It replaces what was known or assumed under its name. Keeps a reference. A pod that is pinned
// but not bound counts on the node that it is pinned to, if it fits there (room_settle()). A pod on an unknown node is
// remembered. A terminal pod counts nowhere, and a pod that is being deleted still counts.
void cluster_set_pod(struct cluster *c, const struct pod *pod);
void cluster_del_pod(struct cluster *c, const char *ns, const char *name);

// A pod that is being created. It counts until the watch shows it (cluster_set_pod) or its creation has failed
// (cluster_unassume). If the watch has already shown the pod, both calls change nothing.
void cluster_assume(struct cluster *c, const char *ns, const char *name, const char *node,
                    const struct resources *requests);
void cluster_unassume(struct cluster *c, const char *ns, const char *name);

// Grows whenever room may have appeared: a pod is gone or smaller, or a node is new or changed in a way that matters to
// the planner. It also grows when a node goes, because that changes why there is no room. Gangs that wait should then
// be planned again.
uint64_t cluster_epoch(const struct cluster *c);

size_t cluster_nodes(const struct cluster *c);
const struct node *cluster_node(const struct cluster *c, const char *name); // NULL if there is none; borrowed
int64_t cluster_silent_ms(const struct cluster *c,
                          const char *name); // a node that is not ready has been silent since then
// Returns true if the node is not ready although it had the time to report. *ret_ms is the rest of that time, if any is
// left.
bool cluster_silent(const struct cluster *c, const char *name, int64_t now_ms, int64_t *ret_ms);

// An object whose pods take room.
struct pod_owner {
    const char *kind, *ns, *name;
    struct list occupants; // struct occupant, by `of_owner`
};
// The next one, in no order: *i is 0 at first. NULL at the end. Borrowed; valid until the next change.
const struct pod_owner *cluster_next_owner(const struct cluster *c, size_t *i);

// The lowest priority of the pods that take room. INT32_MAX: there has been no pod yet.
int32_t cluster_lowest_priority(const struct cluster *c);

// All nodes that exist, cluster_nodes() of them, by name in natural order. cluster_room() is the one with this name,
// NULL if there is none. Valid until the next change.
const struct room *const *cluster_rooms(const struct cluster *c);
const struct room *cluster_room(const struct cluster *c, const char *name);
