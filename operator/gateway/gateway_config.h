// SPDX-License-Identifier: Apache-2.0
// The configuration of a gateway, and its counters.
#pragma once

#include "common/base/loop.h"
#include "operator/agents/agents.h"
#include "operator/agents/replica_reports.h"
#include "operator/gateway/authority.h"
#include "operator/gateway/provisioner.h"
#include "operator/proxy/router.h"

struct gateway_config {                // 0 in a limit: its default
    const struct authority *authority; // borrowed
    struct agents *agents;             // borrowed; NULL = none are served
    const char *replica;  // borrowed: what it is called among several, for those who watch; NULL = the only one
    const char *instance; // borrowed: what tells this process from others of that name
    struct replica_reports *reports; // borrowed: what other replicas say; NULL = there are none
    const char *(*replicas)(
        void *ctx); // the names of all of them, as a JSON list; may be NULL, and return it: not known
    // Which object a pod belongs to, and how often its agent is to be heard. ERR_UNAVAILABLE: not known here yet, it
    // shall come again; ERR_CONFLICT: it was replaced; ERR_FORBIDDEN: it is not ours. Strings borrowed or in the arena.
    int (*pod)(void *ctx, const struct pod_claims *claims, struct arena *a, struct agent_identity *ret,
               int64_t *ret_heartbeat_ms, struct err *err);
    // The pod and node of a rank, for messages; may set neither. NULL = nobody knows.
    void (*place)(void *ctx, const char *group_uid, uint32_t rank, struct arena *a, const char **ret_pod,
                  const char **ret_node);
    // A worker process of the group has connected, or is gone; NULL = nobody wants to know. May not call the gateway.
    void (*worker)(void *ctx, const char *group_uid);
    // The process of a rank is to be killed: tells the agent of its pod, whose EXITED is the end of it. attempt: its
    // own; 0 = whichever there is. ERR_UNAVAILABLE: no such agent is connected here. NULL = there are none.
    int (*kill)(void *ctx, const char *group_uid, uint32_t attempt, uint32_t rank, struct err *err);
    const struct provisioner *provisioner; // borrowed; NULL = clients create and delete no groups here
    void *ctx;
    // How much more than another a namespace may hold and do (operator/proxy/tenant.h); NULL: no more.
    uint32_t (*weight)(const void *weights, const char *ns);
    const void *weights;      // borrowed
    unsigned max_connections; // 16384; half of them may be clients
    unsigned max_pending;     // authorisations that are under way; 1024
    unsigned max_calls;       // of one client that are not answered; 4096
    bool share;               // long bodies go by reference between processes of this host, on Unix sockets
    bool sleeps;              // whenever it waits: the loop does not spin
    size_t memory;            // that the process may use, which the next four and others follow (budget.h); 0 = 4 GiB
    size_t max_body;          // of a call or an answer; 2 GiB
    size_t max_whole;         // of those that have to be here whole, and of a message of JSON-RPC; 64 MiB
    size_t max_post;          // of an HTTP request; 1 MiB
    size_t max_queue;         // that wait to be sent to one peer; 256 MiB
    size_t max_session;       // bytes held for one client; 512 MiB
    size_t max_total;         // bytes held for all; 2 GiB
    int64_t hello_ms;         // until HELLO; 10 s
    int64_t ping_ms;          // silence after which a peer is asked, and given up after as long again; 20 s
    int64_t authorise_ms;     // until the authority has answered; 10 s
    int64_t review_ms;        // until it is asked again about a client that is served; 60 s
    int64_t ready_wait_ms;    // how long calls without a deadline wait for their group; 10 minutes
    int64_t task_wait_ms;     // how long tasks without one wait for a slot; a day
    int64_t exit_wait_ms;     // how long calls of a lost process wait for its exit code; 2 s
    int64_t drain_ms;         // that calls have to end after gateway_stop(); 5 s
    int64_t settle_ms;        // that calls are still taken after it; 500 ms, at most half of drain_ms
};

struct gateway_counters {
    uint64_t clients, workers, agents;        // sessions now
    uint64_t posts;                           // HTTP requests now
    uint64_t pending;                         // authorisations under way
    uint64_t opened, refused;                 // ever: peers that were let in; that were not
    uint64_t answers;                         // ever: calls that ended with a result
    uint64_t errors[CALL_FAILURE_KINDS];      // ever: that ended otherwise, by call_failure_kind()
    uint64_t bytes_in, bytes_out, bytes_held; // ever; ever; now, for calls
};
