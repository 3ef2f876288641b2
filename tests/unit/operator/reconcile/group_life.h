// SPDX-License-Identifier: Apache-2.0
// The life of one WorkerGroup in a simulated world, under an operator: what must hold at every step of it is checked as
// it goes on.
#pragma once

#include "tests/unit/operator/reconcile/group_operator.h"

#include <stdio.h>

struct life {
    struct sim_world w;
    struct sim_operator o;
    int32_t attempt, incarnation, restarts; // as the status said last
};

extern uint64_t life_seed; // of the present one
extern bool life_loud;     // it is told step by step

#define must(condition, ...)                                                                                   \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            fprintf(stderr, "seed %" PRIu64 " (run again with SIM_SEED=%" PRIu64 "): ", life_seed, life_seed); \
            fprintf(stderr, __VA_ARGS__);                                                                      \
            fprintf(stderr, "\n");                                                                             \
            fail_msg("%s", #condition);                                                                        \
        }                                                                                                      \
    } while (0)

struct life *life_calm(const struct sim_spec *spec); // of a group of 8 in which nothing goes wrong by itself
void life_end(struct life *l);
void life_turn(struct life *l);             // the operator sees what it can and decides until it has nothing to do
void life_pass(struct life *l, int64_t ms); // turns all the time
void life_tell(const struct life *l, const char *what);

const struct workergroup *life_group(const struct life *l);
const struct condition *life_condition(const struct life *l, const char *type);
bool life_is(const struct life *l, const char *type); // that condition is True
const char *life_reason(const struct life *l, const char *type);
int32_t life_pods(const struct life *l); // that live
