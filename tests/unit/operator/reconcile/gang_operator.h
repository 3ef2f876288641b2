// SPDX-License-Identifier: Apache-2.0
// An operator in a simulated world (gang_world.h), for both kinds of gangs. It has stores that follow the world's log,
// the observations of one gang, and an executor that carries out plans as operator/exec does. The world lets requests
// be refused or lost, answers be lost, creations come through late, clocks jump, and the operator die before or after
// any request.
#pragma once

#include "operator/exec/decision_time.h"
#include "operator/exec/observations.h"
#include "tests/unit/clock_fake.h"
#include "tests/unit/operator/reconcile/gang_world.h"

struct sim_operator;

struct sim_owner { // what differs between the kinds of gangs
    bool keeps_pod;
    // Decides, and checks the plan.
    void (*plan)(struct sim_operator *o, const struct object *object, struct gang_view *gang, struct arena *a,
                 struct plan *ret);
    void (*note)(struct observations *n, const struct object *object, const struct plan *p, int64_t now_ms);
};
extern const struct sim_owner sim_group, sim_placementgroup;

struct sim_registry { // of agents, as the same process knows them
    struct agents *agents;
    struct sim_operator *o;
    struct clock_fake clock;
};

struct sim_process { // of the operator
    struct sim_mirror mirror;
    struct sim_registry *registry;
};

struct sim_operator {
    struct sim_world *w;
    const struct sim_owner *owner;   // of the world's kind of gang
    struct sim_process processes[2]; // the leader, and the standby that follows if it dies
    struct cluster *cluster;
    struct observations observations;
    bool dirty, waits_for_room;
    uint64_t epoch;
    int64_t skew_ms, max_skew_ms; // of its clock
    struct decision_time time;
    const char *keys;         // that it has now; NULL = none, and it does not listen
    bool has_others;          // the cluster has agents of other groups
    int64_t others_since_ms;  // an agent of another group has been connected since then; 0 = there is none
    int64_t others_heard_ms;  // the connection of that agent is dead, and it was last heard then; 0 = it lives
    int64_t replica_since_ms; // another replica has been connected since then; 0 = there is none
    int64_t due_ms;           // time of the next look without a reason, -1 = none
    int failures;             // in a row
    // The process dies once, at the request with this number (from 1), 0 = never. It dies before the request, or after
    // the request but before its answer. The standby has not seen the last `lag` entries of the log then.
    int crash_at;
    bool crash_after;
    size_t lag;
    // For properties.
    int requests, writes, events, deaths; // writes: of the status
    const char *last_plan;                // in the world's arena
    size_t last_actions;
};

void sim_operator_init(struct sim_operator *o, struct sim_world *w);
void sim_operator_done(struct sim_operator *o);
void sim_operator_forget(struct sim_operator *o);                 // its observations, as a new process does
void sim_operator_watch(struct sim_operator *o);                  // sees what has happened, or a part of it
void sim_operator_die(struct sim_operator *o);                    // the standby or a new process leads from now on
void sim_operator_keys(struct sim_operator *o, const char *keys); // those in the Secret are others, or gone
bool sim_operator_awake(const struct sim_operator *o);
void sim_operator_turn(struct sim_operator *o); // one decision and its execution
