// SPDX-License-Identifier: Apache-2.0
// The life of one gang in a simulated world, under an operator. The rules for every step are checked as it goes on.
#pragma once

#include "tests/unit/operator/reconcile/gang_operator.h"

#include <stdio.h>

struct life {
    struct sim_world w;
    struct sim_operator o;
    void (*check)(struct life *l);          // checks the rules that hold after every decision
    const char *(*missing)(struct life *l); // says how the gang differs from its spec, NULL = it does not
    int32_t attempt, incarnation, restarts; // as the status said last
};

extern char life_name[160]; // of the present one, for messages
extern bool life_loud;      // it is told step by step

#define must(condition, ...)                           \
    do {                                               \
        if (!(condition)) {                            \
            fprintf(stderr, "%s: ", life_name);        \
            fprintf(stderr, __VA_ARGS__);              \
            fprintf(stderr, "\n");                     \
            fail_msg("%s: %s", life_name, #condition); \
        }                                              \
    } while (0)

void life_of_seed(uint64_t seed); // names the life
// Calls `live` with each seed from 1 to n. SIM_SEEDS is another n; with SIM_SEED, there is only that one life.
void life_each(int64_t n, void (*live)(uint64_t seed));
void life_end(struct life *l); // frees it
void life_tell(const struct life *l, const char *what);

void life_turn(struct life *l);             // the operator sees what it can and decides until it has nothing to do
void life_pass(struct life *l, int64_t ms); // turns all the time
// For so many steps, a random time passes, and before half of the turns, `happens` does something to the world.
void life_wild_steps(struct life *l, int steps, void (*happens)(struct life *l));
// Time passes until nothing is missing or under way: no pod is about to go, the operator has no reason to look. Fails
// if that takes more than so many steps. `phase` is for messages.
void life_settle(struct life *l, int steps, const char *phase);
// Later looks, by the same process and by a new one, must not change the status.
void life_stay(struct life *l);

const struct condition *life_condition(const struct life *l, const char *type);
bool life_is(const struct life *l, const char *type); // that condition is True
const char *life_reason(const struct life *l, const char *type);
int32_t life_pods(const struct life *l); // that live
