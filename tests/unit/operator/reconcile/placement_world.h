// SPDX-License-Identifier: Apache-2.0
// The cluster of placement_simulation.h as it really is: nodes, pods, future events, and the part of kube-scheduler.
// The operator's accounting gets at once what its watches show of the cluster.
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
    uint32_t version;   // of its events, if it belongs to other people
    struct sgang *gang; // NULL = it belongs to other people
    char name[56];
    const struct pod *object; // the pod that the operator sees; a reference
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
    int64_t waiting_ms;    // when it began to wait, as its condition says; 0 = it does not wait
    int64_t first_wait_ms; // when it arrived or was evicted
    int64_t again_ms;      // time of the next decision at the latest; 0 = only when something happens
    bool seen;             // kube-scheduler has seen it
    int backoffs;
    bool hopeless;
    uint32_t uid;
    uint32_t version; // of its events: older ones are ignored
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
    uint64_t epoch; // the cluster's epoch when the waiting gangs were last asked
    struct snode nodes[NODES_MAX];
    int n_nodes;
    struct sgang gangs[GANGS_MAX];
    struct spod others[OTHERS_MAX];
    struct event heap[EVENTS_MAX];
    int n_heap;
    int64_t serial;
    bool draining;
    bool dies; // the operator dies in the middle of the next creation
    bool dead;
    struct simulation_report *report;
    char wrong[256];
};

bool sim_one_in(struct sim *s, uint64_t n);
int sim_up_to(struct sim *s, int n); // 0 to n
// The first violation ends the simulation.
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void sim_after(struct sim *s, int64_t ms, enum event_kind kind, int which, uint32_t version);
struct event sim_next_event(struct sim *s);

void sim_node_up(struct sim *s, int i);
void sim_show(struct sim *s, struct spod *p); // the operator sees the pod in its present state
void sim_pod_gone(struct sim *s, struct spod *p);
struct spod *sim_next_pod(struct sim *s, int *i); // *i is 0 at first; NULL at the end

struct load { // of a node
    int gpus, cpus;
};
// The load of pods that are bound, and with `pinned` also of pods that are pinned, with at least this priority.
void sim_loads(struct sim *s, bool pinned, int32_t priority, struct load ret[NODES_MAX]);
bool sim_fits(const struct load *l, const struct spod *p); // resources that the pod does not request do not matter

// Pods have to go for p: the pods of the lowest priorities that are enough begin to end. Returns false if all of them
// are not enough.
bool sim_evict_for(struct sim *s, const struct spod *p);
