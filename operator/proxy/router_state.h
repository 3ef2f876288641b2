// SPDX-License-Identifier: Apache-2.0
// The state of the router: groups, calls that ranks have, and everything that waits for a later turn of the loop.
// router.h has the events that change it.
#pragma once

#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/base/free_list.h"
#include "common/base/map.h"
#include "common/wire/record_reader.h"
#include "operator/proxy/call_failure.h"
#include "operator/proxy/idmap.h"
#include "operator/proxy/proxy_group.h"

// This number of calls takes about half a millisecond, even on a busy machine.
enum { ROUTER_TURN_WORK = 256 };

struct router_config {
    const struct clock *clock;  // borrowed
    const char *replica;        // its own name, borrowed; NULL = there is only one replica
    const char *weights;        // of namespaces (weights.h), borrowed; NULL = 1 for each
    uint32_t total_sessions;    // connections of all clients at a time; 0 = any number
    size_t total_bytes;         // bytes of bodies and calls, of all sessions and workers
    size_t session_bytes;       // the same for one session, and for all results of one call together
    size_t high_mark, low_mark; // above high_mark a session is not read until it is below low_mark
    // Bytes of one body that wait. Above pause_mark its sender pauses, at resume_mark it goes on. 0 = high_mark and
    // half of it.
    size_t pause_mark, resume_mark;
    size_t max_whole;  // most bytes of arguments that must be here whole, or wait after a HOLD; 0 = any number
    size_t whole_json; // JSON arguments up to this length are passed on once they are here whole; 0 = none are
    uint32_t total_calls, session_calls;
    uint32_t member_calls; // calls that one process has not answered
    int64_t ready_wait_ms; // how long calls without a deadline wait for their group
    // How long such calls wait for a slot of any rank. No call waits longer for a slot or its group.
    int64_t task_wait_ms;
    int64_t exit_wait_ms; // how long calls of a lost process wait for its exit code
    unsigned turn_work;   // most calls that a turn of the loop sends or ends for one reason; 0 = ROUTER_TURN_WORK
};

struct router {
    struct router_config config;
    struct quota *bytes;
    uint64_t n_results, n_errors[CALL_FAILURE_KINDS]; // all answers since the start
    bool stopping;                                    // set by the owner: no new calls
    // private
    struct map by_uid, by_key;
    struct map tenants;       // by namespace, while they have a session or a call (tenant.h)
    struct list charged;      // tenants that have done work in this turn, or owe work
    uint32_t level, worked;   // the work that a weight of 1 may do in this turn; the work that all have done in it
    struct list with_jobs;    // tenants with jobs (job.h)
    struct job *job;          // the job that runs now; NULL = none
    struct fiber *fiber;      // runs `job`
    uint64_t n_group_changes; // how often a group appeared or was deleted
    struct idmap running;     // calls that ranks have, by the id that workers know
    struct free_list calls;   // freed calls for one rank
    uint32_t last_id, last_serial;
    struct stats_common stats;
    uint32_t n_calls; // includes answered calls that a worker still has
    uint32_t n_sessions;
    struct deadlines deadlines; // of the tenants: the first deadline of their calls
    struct list behind;         // tenants with work left for later turns
    unsigned at_once;           // how many calls of lost members may still get their errors at once in this turn
    struct list changes, leaving, stopped;
    struct list outputs, heard;       // output.h
    struct list flowing;              // calls for which a peer was told to pause, or whose results are being joined
    struct list group_changes, begun; // changes that wait, and those that were begun (group_change.h)
    struct list kills;                // kills that no agent was told of yet (kill.h)
    struct deadlines kill_deadlines;  // of all kills without an answer
    struct blob *marks;               // "[,]null"
    struct record_part *parts;
    size_t size_parts;
};

// A function that takes a record may return this for the first piece of a body: collect the whole body, see
// record_reader_collect().
enum { ROUTER_COLLECT = 1 };

// The state of a group now, to decide about it or to welcome its peers. NULL = it is not known.
const struct group *router_group(const struct router *r, const char *uid);
void router_each_group(const struct router *r, void (*fn)(void *ctx, const struct group *g), void *ctx);
const struct group *router_group_named(const struct router *r, const char *ns, const char *name);
// The group itself, or the group that a bootstrap group belongs to. Agents report about this one only, and it lasts
// longer. `g` must be a group that a request can name.
struct group *router_group_of(const struct router *r, const struct group *g);

// An array for n parts. The next call of this function may reuse it, so use it up at once.
struct record_part *router_parts(struct router *r, size_t n);
