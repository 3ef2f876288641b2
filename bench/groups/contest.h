// SPDX-License-Identifier: Apache-2.0
// One size of load, measured in turns: bare pods that the benchmark creates, and as many pods of groups.
#ifndef CADRE_BENCH_GROUPS_CONTEST_H
#define CADRE_BENCH_GROUPS_CONTEST_H

#include "bench/groups/operator.h"
#include "bench/groups/world.h"
#include "bench/lib/samples.h"

struct bench {
    struct world world;
    struct operator operator;
    double idle[COMPONENTS_MAX]; // CPU seconds a second that each component uses when nothing is asked of it
    int trials;                  // so far: the number in the next one's names
};

struct contest { // a value a trial; times in milliseconds
    struct samples floor_seen, floor_running;
    struct samples seen, running, ready;
    struct samples floor_cpu[COMPONENTS_MAX], cpu[COMPONENTS_MAX]; // seconds beyond what the same time costs idle
    struct samples requests, posts, patches, errors, reconciles;   // a group
};

void bench_measure_idle(struct bench *b);
const char *bench_prefix(struct bench *b, char *ret, size_t size, const char *kind); // of the next trial's names

void contest_run(struct bench *b, int groups, int pairs, struct contest *c);
void contest_groups(struct bench *b, const char *prefix, int groups, struct contest *c); // one trial; they stay
double contest_operator_cpu(const struct bench *b, const struct contest *c);             // median
void contest_total_cpu(const struct bench *b, const struct samples *each, struct samples *ret);

#endif
