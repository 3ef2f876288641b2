// SPDX-License-Identifier: Apache-2.0
// The registry of the agents that are connected to this replica, by the UID of their pod. It knows no sockets: records
// go in and come out. It keeps what an agent has reported as long as the pod exists, even without a connection.
//
// One thread. The owner of the connections passes records in, and says when a connection ends. Deciding code asks for
// facts and sends commands. The callbacks of agents_config report what has changed.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/wire/record_reader.h"
#include "operator/agents/facts.h"

enum {
    AGENTS_MAX = 128 * 1024, // pods
    AGENTS_GROUPS_MAX = 64,  // known groups in one pod; above it, idle groups are forgotten
    // Bytes of messages and last lines, of all processes of one pod. Above it, texts are left out.
    AGENTS_TEXT_MAX = 1 << 20,
    AGENTS_SERIES_MAX = 1024 // GPUs in metrics; above it, GPUs are left out
};

struct agents;
struct connected_agent; // one connection

struct agents_config {
    const struct clock *clock; // borrowed
    // The facts about this object have changed. It is called inside agents_record() and similar functions, and must not
    // call the registry.
    void (*changed)(void *ctx, const char *ns, const char *group);
    // The same for a pod of a PlacementGroup, where several groups may run. `owner` is the PlacementGroup, `group_uid`
    // is the group that has changed. NULL = all of its groups.
    void (*placementgroup_changed)(void *ctx, const char *ns, const char *owner, const char *group_uid);
    // The agent of this pod has connected or disconnected. May be NULL. The rules of `changed` apply.
    void (*presence)(void *ctx, const char *pod_uid);
    // Tells whether the agent of such a pod may report processes of this group.
    bool (*may_report)(void *ctx, const char *ns, const char *owner, const char *group_uid);
    // A process has ended. The router fails the calls that wait for it.
    void (*exited)(void *ctx, const char *group_uid, uint32_t attempt, uint32_t rank, int exit_code,
                   const char *last_lines);
    // The agent refuses a KILL from agents_kill(). May be NULL.
    void (*kill_refused)(void *ctx, const char *group_uid, uint32_t rank, const char *why);
    // A process of the group has printed a line; `text` has no line end. If `text` is NULL, `n` lines were dropped. May
    // be NULL.
    void (*printed)(void *ctx, const char *group_uid, uint32_t rank, const char *text, size_t n);
    // Reports the GPUs of a rank as a JSON list (common/wire/gpu.h); "" = it has none. May be NULL.
    void (*gpus)(void *ctx, const char *group_uid, uint32_t rank, const char *json);
    void *ctx;
};

struct agent_identity {     // borrowed only during the call
    const char *ns, *group; // the object that the pod belongs to; it is told of changes
    bool of_placementgroup; // the object is a PlacementGroup, and several groups run in its pods
    const char *pod, *pod_uid, *node;
    const char *group_uid; // reports about other groups are ignored; NULL = the agent may report any group
};

// Sends a command: queues one record. Errors: ERR_LIMIT, ERR_GONE.
typedef int (*agent_send_fn)(void *owner, uint8_t type, const char *body, size_t len, struct err *err);

struct agents *agents_new(const struct agents_config *c);
void agents_free(struct agents *a); // every connection must have left

// Adds a connection after its identity was verified, with its HELLO. It replaces an older connection of the same pod;
// agents_replaced() returns the owner of that one. The HELLO replaces everything that was known. Errors: ERR_INVALID,
// ERR_LIMIT.
int agents_join(struct agents *a, const struct agent_identity *id, const char *hello, size_t len, agent_send_fn send,
                void *owner, struct connected_agent **ret, struct err *err);
// Returns the owner of a connection to close, because a newer one has replaced it or its pod is gone. It returns each
// owner once; NULL = there is none.
void *agents_replaced(struct agents *a);
void agents_leave(struct agents *a, struct connected_agent *g); // call it when the connection has ended: frees it
// Takes a whole record of an agent. If it returns an error, the agent has broken the protocol: close the connection.
// Records from a replaced connection are ignored. The owner of the connection decides how long an agent may be silent.
// To hang up, call agents_leave().
int agents_record(struct agents *a, struct connected_agent *g, const struct record *rec, struct err *err);
void agents_pod_gone(struct agents *a, const char *pod_uid); // forgets what the agent of this pod has reported
// Call this when the wall clock was set by `ms`. The times at which agents came and went move with it.
void agents_clock_moved(struct agents *a, int64_t ms);

// Returns the facts for decisions. Strings are copied to the arena. If the agent was never here, *ret is all zero.
void agents_facts(const struct agents *a, const char *pod_uid, const char *group_uid, struct arena *arena,
                  struct agent_facts *ret);
// Returns true if a GPU of this pod fell off the bus, also if no rank uses it.
bool agents_gpu_lost(const struct agents *a, const char *pod_uid);
struct agent_group {
    const char *uid;
    enum agent_state state;
    int32_t attempt;
};
// Returns the groups that the agent of this pod has reported.
size_t agents_groups(const struct agents *a, const char *pod_uid, struct arena *arena, struct agent_group **ret);
// Returns in how many pods processes of this group may run, by the last reports of their agents.
size_t agents_running(const struct agents *a, const char *group_uid);
// Sends a command. ERR_UNAVAILABLE: the agent is not connected. Other errors come from the connection. Sets `sent` in
// the facts.
int agents_command(struct agents *a, const char *pod_uid, const char *group_uid, int32_t attempt, uint8_t type,
                   const char *body, struct err *err);
// Returns the body of a KILL.
char *agents_kill_body(const char *group_uid, uint32_t attempt, uint32_t rank, struct arena *a);
// Kills a process of this attempt at once; attempt 0 = any attempt. Its EXITED follows, or kill_refused(). This is
// not a part of the decisions about the group, so the facts do not show it. Returns the errors of agents_command().
int agents_kill(struct agents *a, const char *pod_uid, const char *group_uid, uint32_t attempt, uint32_t rank,
                struct err *err);
// Tells agents to send what processes of this group print, or to stop. It applies to connected agents, and to those
// that connect later.
void agents_listen(struct agents *a, const char *group_uid, bool on);
// Call this after the WELCOME was sent, because an agent reads nothing before it. Tells the agent which groups have
// listeners.
void agents_welcomed(const struct agents *a, const struct connected_agent *g);
// Returns the identity of the agent of this pod if it is connected, else NULL. It is borrowed until the agent leaves.
const struct agent_identity *agents_sight(const struct agents *a, const char *pod_uid);
// Calls `fn` for each connected agent.
void agents_each(const struct agents *a, void (*fn)(void *ctx, const char *pod_uid), void *ctx);
// Writes metrics of the GPUs in pods with connected agents.
void agents_metrics(const struct agents *a, struct buf *out);
size_t agents_count(const struct agents *a); // how many are connected
// Returns the agents that are connected longest, at most `max` of them, and their number.
size_t agents_longest_connected(const struct agents *a, struct connected_peer *ret, size_t max);
