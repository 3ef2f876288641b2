// SPDX-License-Identifier: Apache-2.0
// The state of the router: groups, calls that ranks have, and everything that waits for a later turn of the loop.
// router.h has the events that change it.
#pragma once

#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/base/map.h"
#include "common/base/reuse.h"
#include "common/wire/record_reader.h"
#include "operator/proxy/call_failure.h"
#include "operator/proxy/idmap.h"
#include "operator/proxy/proxy_group.h"

// About as many as fit into half a millisecond, also on a machine that is busy.
enum { ROUTER_TURN_WORK = 256 };

struct router_config {
    const struct clock *clock;          // borrowed
    const char *replica;                // its name among several, borrowed; NULL = there is but this one
    const char *(*replicas)(void *ctx); // names of all of them, as a JSON list; may be NULL, and return it: not known
    void *ctx;
    uint32_t (*weight)(const void *weights, const char *ns); // of a namespace (tenant.h); NULL: 1 for each
    const void *weights;
    uint32_t total_sessions;    // of all clients at a time; 0 = any number
    size_t total_bytes;         // of bodies and calls, over all sessions and workers
    size_t session_bytes;       // the same of one session; also the most that results of a call may have together
    size_t high_mark, low_mark; // a session is not read between them (going up, going down)
    size_t pause_mark,
        resume_mark;   // of one body: its sender is told to pause, and to go on; 0 = high_mark and its half
    size_t max_whole;  // of arguments that have to be here whole, or went on while they were to wait; 0 = any
    size_t whole_json; // JSON arguments up to this are here whole before they are passed on; 0 = no need
    uint32_t total_calls, session_calls;
    uint32_t member_calls; // that one process has not answered
    int64_t ready_wait_ms; // how long calls without a deadline wait for the group
    int64_t task_wait_ms;  // how long they wait for a slot of any rank; the most that any call waits for either
    int64_t exit_wait_ms;  // how long calls of a lost process wait for its exit code
    unsigned turn_work;    // calls that a turn of the loop sends on or ends for one reason; 0 = ROUTER_TURN_WORK
};

struct router {
    struct router_config config;
    struct quota *bytes;
    uint64_t n_results, n_errors[CALL_FAILURE_KINDS]; // calls that were answered, ever
    bool stopping;                                    // set by the owner: no new calls
    // private
    struct map by_uid, by_key;
    struct map tenants;       // by their namespace, while they have a session or a call (tenant.h)
    struct list spenders;     // tenants that have done work in this turn of the loop
    uint32_t level, worked;   // what a weight of 1 may do in this turn; what all have done in it
    struct list employers;    // tenants with jobs (job.h)
    struct job *job;          // the job that runs now ...
    struct fiber *fiber;      // ... and its fiber
    uint64_t n_group_changes; // in group_changes and begun
    struct idmap running;     // calls by the id that workers know them by
    struct reuse calls;       // those for one rank that are over
    uint32_t last_id, last_serial;
    struct stats_common stats;
    uint32_t n_calls; // answered ones that a worker still has included
    uint32_t n_sessions;
    struct deadlines deadlines; // of namespaces: the first of their calls
    struct list behind;         // tenants with work left for later turns
    unsigned at_once;           // calls of lost members that may still get their errors in this turn, and not later
    struct list changes, leaving, stopped;
    struct list outputs, heard;       // output.h
    struct list flowing;              // calls that a peer was told to pause
    struct list group_changes, begun; // changes that wait, and those that were begun (group_change.h)
    struct list kills;                // kills that no agent was told of yet (kill.h)
    struct deadlines kill_deadlines;  // of all kills that are not answered
    struct blob *marks;               // "[,]null"
    struct record_part *parts;
    size_t size_parts;
};

// What takes a record may say of a first piece: this one is to come whole, see record_reader_collect().
enum { ROUTER_COLLECT = 1 };

// What is known of a group now, to decide about it or greet its peers; NULL = nothing.
const struct group *router_group(const struct router *r, const char *uid);
void router_each_group(const struct router *r, void (*fn)(void *ctx, const struct group *g), void *ctx);
const struct group *router_group_named(const struct router *r, const char *ns, const char *name);

// An array that is used up before anything else is called.
struct record_part *router_parts(struct router *r, size_t n);
