// SPDX-License-Identifier: Apache-2.0
// An operator in the world of gang_world.h: stores that follow its log, the observations of its PlacementGroup, and an
// executor that carries plans out as operator/exec does, while requests are refused or lost, answers are lost,
// creations come through late, clocks jump, and the operator dies between any two writes.
#pragma once

#include "operator/exec/decision_time.h"
#include "operator/exec/observations.h"
#include "tests/unit/clock_fake.h"
#include "tests/unit/operator/reconcile/gang_world.h"

struct plg_operator {
    struct sim_world *w;
    struct sim_mirror leader, standby;
    struct cluster *cluster;
    struct observations observations;
    bool dirty, waits_for_room;
    uint64_t epoch;
    int64_t due_ms;  // of the next look without a reason, -1 = none
    int64_t skew_ms; // of the leader's clock
    struct clock_fake clock;
    struct decision_time time;
    int failures; // in a row
    // The process dies once, at that write from 1, 0 = never: before it, or after it but before the answer.
    int crash_at;
    bool crash_after;
    size_t lag; // so many entries of the log the standby has not seen then
    // For properties.
    int writes, deaths;
    const char *last_plan; // in the world's arena
    size_t last_actions;
};

void plg_operator_init(struct plg_operator *o, struct sim_world *w);
void plg_operator_done(struct plg_operator *o);
void plg_operator_watch(struct plg_operator *o); // sees what has happened, or a part of it
void plg_operator_die(struct plg_operator *o);   // the standby or a new process leads from now on
bool plg_operator_awake(const struct plg_operator *o);
void plg_operator_turn(struct plg_operator *o); // one decision and its execution
