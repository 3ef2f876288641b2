// SPDX-License-Identifier: Apache-2.0
// The cost of a group's calls, by method: number, duration, bytes, calls in flight, and errors by rank. The stats also
// show slow ranks: for each call to several ranks, they note the rank that answered last, and its delay after the
// median. A call takes constant time and, except for the first call of a method, no memory. Everything is bounded.
//
// A duration runs from the arrival of the call to its answer, and includes the wait for a group that is not ready.
// Bytes are counted as the client sees them: arguments in, results out.
#pragma once

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/map.h"
#include "common/wire/call_head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STATS_METHODS_MAX = 32, // of a group; calls of further methods count as STATS_OTHER
    STATS_SERIES_MAX = 512, // methods of all groups that have metrics of their own
    STATS_BUCKETS = 20,
    STATS_NAME_SIZE = CALL_HEAD_ROLE_MAX + 1 + CALL_HEAD_METHOD_MAX + 1,
};

#define STATS_OTHER "other"

extern const int64_t stats_bounds[STATS_BUCKETS]; // microseconds, ascending: the upper bound of each bucket

struct stats_rank {
    uint64_t last;      // calls in which this rank answered last
    uint64_t behind_us; // its delay after the median in these calls, in all
    uint64_t errors;    // errors of this rank
};

struct stats_method {
    char name[STATS_NAME_SIZE]; // "method", or "role.method"
    uint64_t results, errors;   // numbers of answers
    uint64_t bytes_in, bytes_out;
    uint64_t us;                         // sum of all durations
    uint64_t buckets[STATS_BUCKETS + 1]; // how many durations are in each; the last bucket is above all bounds
    uint64_t compared, behind_us;        // calls to several ranks; the delays of their last ranks, in all
    uint32_t in_flight;
    bool in_series;
    struct stats_rank *ranks; // one for each rank; NULL = no rank has any
};

struct stats_common { // for all groups
    const struct clock *clock;
    const char *replica;  // name of this replica; NULL = there is only one
    const char *replicas; // names of all replicas, as a JSON list; NULL = not known
    int64_t now_us;       // read once in a turn of the loop, because that costs as much as the rest. 0 = not read yet
    uint32_t n_series;    // methods that have metrics of their own
};

struct stats { // of a group
    struct stats_common *common;
    uint32_t world;
    uint32_t n;
    struct stats_method *methods[STATS_METHODS_MAX]; // in the order of their first call
    struct stats_method other;                       // its name is "" while it has no calls
    // private
    struct map by_name;
    struct stats_method *recent; // found last
};

void stats_init(struct stats *s, struct stats_common *common);
void stats_done(struct stats *s);
void stats_world(struct stats *s, uint32_t world); // the number of ranks now. Forgets the stats of ranks if it changes

// Add a method only if workers have declared it. So names that clients make up take no room.
struct stats_method *stats_find(struct stats *s, const char *role, const char *method); // or `other`
struct stats_method *stats_add(struct stats *s, const char *role, const char *method);

// A call. Set everything that is known of its answer before stats_end().
struct stats_call {
    struct stats *stats; // NULL = it has ended
    struct stats_method *method;
    int64_t begun_us, half_us, last_us; // 0 = not yet
    size_t bytes_in, bytes_out;
    int64_t error_rank; // rank that caused the error, -1 = none
    bool failed;
};

void stats_begin(struct stats_call *c, struct stats *s, struct stats_method *m);
void stats_become(struct stats_call *c, struct stats_method *m); // the call belongs to that method
// One of n ranks has answered, `left` have not.
void stats_answer(struct stats_call *c, uint32_t rank, uint32_t n, uint32_t left);
void stats_end(struct stats_call *c);
