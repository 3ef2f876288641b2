// SPDX-License-Identifier: Apache-2.0
// An operator in a simulated world (gang_world.h): stores that follow the world's log, the observations of one group,
// and an executor that carries plans out as operator/exec does, while the world lets requests be refused or lost,
// answers be lost, creations come through late, and the operator die between any two actions.
#pragma once

#include "operator/exec/decision_time.h"
#include "operator/exec/observations.h"
#include "tests/unit/clock_fake.h"
#include "tests/unit/operator/reconcile/gang_world.h"

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
    struct sim_process processes[2]; // the leader, and the standby that follows if it dies
    struct cluster *cluster;
    struct observations observations;
    bool dirty, waits_for_room;
    uint64_t epoch;
    int64_t skew_ms, max_skew_ms; // of its clock
    struct decision_time time;
    const char *keys;         // that it has now; NULL = none, and it does not listen
    bool has_others;          // the cluster has agents of other groups
    int64_t others_since_ms;  // since when an agent of another group is connected to it; 0 = there is none
    int64_t others_heard_ms;  // its connection is dead, and it was heard of last then; 0 = it lives
    int64_t replica_since_ms; // likewise another replica
    int64_t due_ms;           // of the next look without a reason, -1 = none
    int failures;             // in a row
    // For properties.
    int requests, writes, events; // writes: of the status
    const char *last_plan;        // in the world's arena
    size_t last_actions;
};

void sim_operator_init(struct sim_operator *o, struct sim_world *w);
void sim_operator_done(struct sim_operator *o);
void sim_operator_watch(struct sim_operator *o);                  // sees what has happened, or a part of it
void sim_operator_die(struct sim_operator *o);                    // the standby or a new process leads from now on
void sim_operator_keys(struct sim_operator *o, const char *keys); // those in the Secret are others, or gone
bool sim_operator_awake(const struct sim_operator *o);
void sim_operator_turn(struct sim_operator *o); // one decision and its execution
