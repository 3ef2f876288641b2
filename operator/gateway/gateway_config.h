// SPDX-License-Identifier: Apache-2.0
// The configuration of a gateway, and its counters.
#pragma once

#include "common/base/loop.h"
#include "operator/agents/agents.h"
#include "operator/agents/replica_reports.h"
#include "operator/gateway/authority.h"
#include "operator/gateway/provisioner.h"
#include "operator/proxy/router.h"

struct gateway_config {                // a limit of 0 = its default
    const struct authority *authority; // borrowed
    struct agents *agents;             // borrowed; NULL = it serves no agents
    const char *replica;  // borrowed: the name of this replica, for people who watch; NULL = there is only one
    const char *instance; // borrowed: distinguishes this process from others with the same name
    struct replica_reports *reports; // borrowed: the reports of other replicas; NULL = there are none
    // Finds the object that a pod belongs to, and how often its agent sends a heartbeat. ERR_UNAVAILABLE: the pod is
    // not known here yet, and the agent shall connect again. ERR_CONFLICT: the pod was replaced. ERR_FORBIDDEN: it is
    // not ours. Strings are borrowed or in the arena.
    int (*pod)(void *ctx, const struct pod_claims *claims, struct arena *a, struct agent_identity *ret,
               int64_t *ret_heartbeat_ms, struct err *err);
    // Finds the pod and the node of a rank, for messages. It may leave both unset. NULL = they are never known.
    void (*place)(void *ctx, const char *group_uid, uint32_t rank, struct arena *a, const char **ret_pod,
                  const char **ret_node);
    // A worker process of the group has connected or disconnected. May be NULL. It must not call the gateway.
    void (*worker)(void *ctx, const char *group_uid);
    // Kills the process of a rank: tells the agent of its pod. The EXITED of the agent ends it. `attempt` is that
    // process's attempt; 0 = any. ERR_UNAVAILABLE: no such agent is connected here. NULL = there are no agents.
    int (*kill)(void *ctx, const char *group_uid, uint32_t attempt, uint32_t rank, struct err *err);
    const struct provisioner *provisioner; // borrowed; NULL = clients create and delete no groups here
    void *ctx;
    const char *weights;      // borrowed: of namespaces (operator/proxy/weights.h); NULL = all are equal
    unsigned max_connections; // 16384; half of them may be clients
    unsigned max_pending;     // open questions to the authority; 1024
    unsigned max_calls;       // open calls of one client; 4096
    bool share;               // processes of this host exchange long bodies by reference, over Unix sockets
    bool sleeps;              // the loop sleeps whenever it waits, and does not spin
    size_t memory; // that the process may use; defaults of the next four and others depend on it (budget.h); 0 = 4 GiB
    size_t max_body;    // of a call or an answer; 2 GiB
    size_t max_whole;   // of bodies that must be here whole, and of a message of JSON-RPC; 64 MiB
    size_t max_post;    // of an HTTP request; 1 MiB
    size_t max_queue;   // waiting to be sent to one peer; 256 MiB
    size_t max_session; // bytes held for one client; 512 MiB
    size_t max_total;   // bytes held for all; 2 GiB
    int64_t hello_ms;   // until HELLO must come; 10 s
    int64_t ping_ms; // a peer that was silent for this time gets a ping, and is closed after the same time again; 20 s
    int64_t authorise_ms;  // until the authority must answer; 10 s
    int64_t review_ms;     // until it is asked again about a served client; 60 s
    int64_t ready_wait_ms; // how long calls without a deadline wait for their group; 10 minutes
    int64_t task_wait_ms;  // how long tasks without a deadline wait for a slot; one day
    int64_t exit_wait_ms;  // how long calls of a lost process wait for its exit code; 2 s
    int64_t drain_ms;      // how long open calls may take after gateway_stop(); 5 s
    int64_t settle_ms;     // how long calls are still taken after it; 500 ms, at most half of drain_ms
};

struct gateway_counters {
    uint64_t clients, workers, agents;        // present sessions
    uint64_t posts;                           // present HTTP requests
    uint64_t pending;                         // present questions to the authority
    uint64_t opened, refused;                 // total: admitted peers; refused peers
    uint64_t answers;                         // total: calls that ended with a result
    uint64_t errors[CALL_FAILURE_KINDS];      // total: calls that ended with an error, by call_failure_kind()
    uint64_t bytes_in, bytes_out, bytes_held; // total; total; held for calls now
};
