// SPDX-License-Identifier: Apache-2.0
// One size of load, measured in turns: bare pods that the benchmark creates, the same pods as the groups have but
// without groups, and groups.
#pragma once

#include "bench/groups/noise.h"
#include "bench/groups/operator.h"
#include "bench/groups/world.h"
#include "bench/lib/samples.h"

struct bench {
    struct world world;
    struct operator operator;
    struct noise *noise;         // NULL: none
    double idle[COMPONENTS_MAX]; // CPU seconds a second that each component uses when nothing is asked of it
    int trials;                  // so far: the number in the next one's names
};

struct meter { // of the CPU time of a trial
    int64_t began_us;
    double before[COMPONENTS_MAX];
};

struct side {                           // a value a trial
    struct samples seen, running;       // milliseconds until all pods exist, and run
    struct samples cpu[COMPONENTS_MAX]; // seconds beyond what the same time costs idle
    struct samples requests;            // that the API server answered to anybody, for eight pods
};

struct contest {
    struct side bare, alike, groups;
    struct samples ready;                                      // of groups, milliseconds
    struct samples writes, posts, patches, errors, reconciles; // a group
};

void meter_begin(const struct bench *b, struct meter *m);
void meter_end(const struct bench *b, const struct meter *m, struct samples *ret); // ret: a value a component
void bench_measure_idle(struct bench *b);
const char *bench_prefix(struct bench *b, char *ret, size_t size, const char *kind); // of the next trial's names

void contest_run(struct bench *b, int groups, int pairs, struct contest *c);
void contest_groups(struct bench *b, const char *prefix, int groups, struct contest *c); // one trial; they stay
double contest_operator_cpu(const struct bench *b, const struct contest *c);             // median
void side_total_cpu(const struct bench *b, const struct side *s, struct samples *ret);
