// SPDX-License-Identifier: Apache-2.0
// What the calls of a group cost, by method: number, duration, bytes, calls in flight, and errors by rank. Also which
// rank is slow: for each call to several ranks, the rank that answered last, and its delay after the median. A call
// takes constant time and, except for the first call of a method, no memory. Everything is bounded.
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
    STATS_METHODS_MAX = 32, // of a group; calls of further ones are those of STATS_OTHER
    STATS_SERIES_MAX = 512, // methods of all groups that have series of their own among the metrics
    STATS_BUCKETS = 20,
    STATS_NAME_SIZE = CALL_HEAD_ROLE_MAX + 1 + CALL_HEAD_METHOD_MAX + 1,
};

#define STATS_OTHER "other"

extern const int64_t stats_bounds[STATS_BUCKETS]; // microseconds, ascending: the most that a bucket takes

struct stats_rank {
    uint64_t last;      // calls in which it was the last to answer
    uint64_t behind_us; // how far it was behind the median in those
    uint64_t errors;    // for which it is to blame
};

struct stats_method {
    char name[STATS_NAME_SIZE]; // "method", of a role "role.method"
    uint64_t results, errors;   // answers
    uint64_t bytes_in, bytes_out;
    uint64_t us;                         // all durations
    uint64_t buckets[STATS_BUCKETS + 1]; // of them; the last: above all bounds
    uint64_t compared, behind_us;        // calls in which there was a last rank, and by how much
    uint32_t in_flight;
    bool in_series;
    struct stats_rank *ranks; // NULL = none has anything; else one for each rank
};

struct stats_common { // of all groups
    const struct clock *clock;
    const char *replica;                // whose calls these are; NULL = there are no others
    const char *(*replicas)(void *ctx); // names of all of them, as a JSON list; may be NULL, and return it: not known
    void *ctx;
    int64_t now_us;    // 0 = to be read: once a turn of the loop, because that costs as much as the rest
    uint32_t n_series; // methods that have some
};

struct stats { // of a group
    struct stats_common *common;
    uint32_t world;
    uint32_t n;
    struct stats_method *methods[STATS_METHODS_MAX]; // as they came
    struct stats_method other;                       // without a name until it has any
    // private
    struct map by_name;
    struct stats_method *recent; // found last
};

void stats_init(struct stats *s, struct stats_common *common);
void stats_done(struct stats *s);
void stats_world(struct stats *s, uint32_t world); // its ranks now; what was of others is forgotten

// For names that workers have declared only is one added: those that clients make up take no room.
struct stats_method *stats_find(struct stats *s, const char *role, const char *method); // or `other`
struct stats_method *stats_add(struct stats *s, const char *role, const char *method);

// A call. All that is known of its answer is set before stats_end().
struct stats_call {
    struct stats *stats; // NULL = it has ended
    struct stats_method *method;
    int64_t begun_us, half_us, last_us; // 0 = not yet
    size_t bytes_in, bytes_out;
    int64_t blamed; // rank, -1 = none
    bool failed;
};

void stats_begin(struct stats_call *c, struct stats *s, struct stats_method *m);
void stats_become(struct stats_call *c, struct stats_method *m);                   // it is one of that method
void stats_answer(struct stats_call *c, uint32_t rank, uint32_t n, uint32_t left); // of n ranks, `left` have yet to
void stats_end(struct stats_call *c);
