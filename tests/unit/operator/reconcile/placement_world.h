// SPDX-License-Identifier: Apache-2.0
// The cluster of placement_simulation.h as it really is: nodes, pods, what will happen when, and kube-scheduler's part.
// What the operator's watches show of it goes into its accounting at once.
#pragma once

#include "common/base/rand.h"
#include "operator/api/pod_constraints.h"
#include "operator/placement/cluster.h"
#include "operator/placement/line.h"
#include "operator/placement/planner.h"
#include "tests/unit/operator/reconcile/placement_simulation.h"

enum {
    GPUS = 8,
    CPUS = 32,
    RACK = 4,
    NODES_MAX = 64,
    GANGS_MAX = 256,
    GANG_PODS = 32,
    OTHERS_MAX = 256,
    EVENTS_MAX = 4096,
    SECOND = 1000,
    MINUTE = 60 * SECOND,
    HOUR = 60 * MINUTE,
    BIND_TIMEOUT = 5 * MINUTE,
    GRACE = 30 * SECOND,
    OTHERS_PRIORITY = 3,
};

enum pod_state { POD_NONE, POD_PINNED, POD_BOUND, POD_ENDING };

struct spod {
    enum pod_state state;
    int node, gpus, cpus;
    int32_t priority;
    uint32_t version;   // of its events, where it is somebody else's
    struct sgang *gang; // NULL = somebody else's
    char name[56];
    const struct pod *object; // as the operator sees it; referenced
};

enum gang_state { GANG_NONE, GANG_WAITING, GANG_BINDING, GANG_RUNNING, GANG_BACKOFF };

struct sgang {
    enum gang_state state;
    struct object object;
    char name[24];
    enum strategy strategy;
    bool by_rack;
    int n, incarnation;
    struct pod_constraints needs;
    struct resource requests[3];
    int64_t length_ms;
    struct spod pods[GANG_PODS];
    int64_t waiting_ms;    // since then, as its condition says; 0 = it does not
    int64_t first_wait_ms; // since it came or was evicted
    int64_t again_ms;      // to be decided at the latest; 0 = only when something happens
    bool seen;             // by kube-scheduler
    int backoffs;
    bool hopeless;
    uint32_t uid;
    uint32_t version; // of its events: older ones are void
    const char *contended[GANG_PODS];
    size_t n_contended;
};

enum event_kind {
    ARRIVAL,
    OTHER_COMES,
    OTHER_GOES,
    NODE_GOES,
    NODE_COMES,
    CRASH,
    DELETED,
    SCHEDULER,
    FINISHED,
    UNBOUND,
    POD_GONE,
    AGAIN
};

struct event {
    int64_t at_ms;
    enum event_kind kind;
    int which;
    uint32_t version;
};

struct snode {
    char name[16], rack[16];
    bool up;
    const struct node *object;
};

struct sim {
    struct rand rand;
    int64_t now_ms;
    struct cluster *cluster;
    struct line *line;
    uint64_t epoch; // of the cluster, when those that wait were last asked
    struct snode nodes[NODES_MAX];
    int n_nodes;
    struct sgang gangs[GANGS_MAX];
    struct spod others[OTHERS_MAX];
    struct event heap[EVENTS_MAX];
    int n_heap;
    int64_t serial;
    bool draining;
    bool dies; // the operator, in the middle of the next creation
    bool dead;
    struct simulation_report *report;
    char wrong[256];
};

bool sim_one_in(struct sim *s, uint64_t n);
int sim_up_to(struct sim *s, int n); // 0 to n
// The first thing that is found to be wrong ends the simulation.
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void sim_after(struct sim *s, int64_t ms, enum event_kind kind, int which, uint32_t version);
struct event sim_next_event(struct sim *s);

void sim_node_up(struct sim *s, int i);
void sim_show(struct sim *s, struct spod *p); // the operator sees the pod as it is now
void sim_pod_gone(struct sim *s, struct spod *p);
struct spod *sim_next_pod(struct sim *s, int *i); // *i is 0 at first; NULL at the end

struct load { // of a node
    int gpus, cpus;
};
// Of pods that are bound, and with `pinned` of those that are to be, of at least that priority.
void sim_loads(struct sim *s, bool pinned, int32_t priority, struct load ret[NODES_MAX]);
bool sim_fits(const struct load *l, const struct spod *p); // what a pod does not ask for is no matter

// The pods that have to go for p begin to end, those of the lowest priority that will do; false if that is not enough.
bool sim_evict_for(struct sim *s, const struct spod *p);
