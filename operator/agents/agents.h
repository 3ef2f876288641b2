// SPDX-License-Identifier: Apache-2.0
// The agents that are connected to this replica, by the UID of their pod. It knows no sockets: records go in and come
// out. What an agent reported is kept as long as its pod exists, even without a connection.
//
// One thread. The owner of the connections passes records in, and says when a connection ends. Deciding code asks for
// facts and sends commands. The only callback is `changed`.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/wire/record_reader.h"
#include "operator/agents/facts.h"

enum {
    AGENTS_MAX = 128 * 1024,   // pods
    AGENTS_GROUPS_MAX = 64,    // that are known in one pod; of more, those forgotten first that are idle
    AGENTS_TEXT_MAX = 1 << 20, // bytes of messages and last lines, of all processes of one pod; more are left out
    AGENTS_SERIES_MAX = 1024   // GPUs in metrics; of more, the others are left out
};

struct agents;
struct agent; // one connection

struct agents_config {
    const struct clock *clock; // borrowed
    // Something that facts tell has changed for this object. From inside agents_record() and the like; may not call
    // anything here.
    void (*changed)(void *ctx, const char *ns, const char *group);
    // The same of a pod that several groups share, whose owner this is: for the group with this UID, NULL = for all.
    void (*changed_shared)(void *ctx, const char *ns, const char *owner, const char *group_uid);
    // The agent of this pod has connected, or has gone; NULL = nobody wants to know. As above.
    void (*presence)(void *ctx, const char *pod_uid);
    // May the agent of such a pod say of a process of this group that it has ended?
    bool (*shares)(void *ctx, const char *ns, const char *owner, const char *group_uid);
    // A process ended: for the router, which fails what is pending there.
    void (*exited)(void *ctx, const char *group_uid, uint32_t attempt, uint32_t rank, int exit_code,
                   const char *last_lines);
    // The agent does not do what agents_kill() asked for; NULL = nobody wants to know.
    void (*kill_refused)(void *ctx, const char *group_uid, uint32_t rank, const char *why);
    // A process of the group has printed a line, without its end (text NULL: that many lines were dropped); NULL =
    // nobody wants to know.
    void (*printed)(void *ctx, const char *group_uid, uint32_t rank, const char *text, size_t n);
    // The GPUs of a rank, as a JSON list (common/wire/gpu.h; "" = it has none); NULL = nobody wants to know.
    void (*gpus)(void *ctx, const char *group_uid, uint32_t rank, const char *json);
    void *ctx;
};

struct agent_identity {     // borrowed for the call only
    const char *ns, *group; // the object that the pod belongs to: who is told of changes
    bool shared;            // a PlacementGroup, on whose pods several groups run
    const char *pod, *pod_uid, *node;
    const char *group_uid; // what the agent says of other groups is nothing to us; NULL = it may speak of all
};

// How commands leave: queues one record; ERR_LIMIT, ERR_GONE.
typedef int (*agent_send_fn)(void *owner, uint8_t type, const char *body, size_t len, struct err *err);

struct agents *agents_new(const struct agents_config *c);
void agents_free(struct agents *a); // every connection has left

// A connection whose identity was verified, with its HELLO. An older one of the same pod is replaced: its owner learns
// it from agents_replaced(). What HELLO says replaces all that was known. ERR_INVALID, ERR_LIMIT.
int agents_join(struct agents *a, const struct agent_identity *id, const char *hello, size_t len, agent_send_fn send,
                void *owner, struct agent **ret, struct err *err);
// Owner of a connection to close, because of a newer one or because the pod is gone; each once, NULL = none (any more).
void *agents_replaced(struct agents *a);
void agents_leave(struct agents *a, struct agent *g); // its connection has ended: frees it
// A record from it, whole. Negative: it broke the protocol, close it. From one that was replaced nothing counts any
// more. How long an agent may be silent is for the owner of its connection to say: who hangs up calls agents_leave().
int agents_record(struct agents *a, struct agent *g, const struct record *rec, struct err *err);
void agents_pod_gone(struct agents *a, const char *pod_uid); // forget what it said
// The wall clock was set by so much: the times at which agents came and went move with it.
void agents_clock_moved(struct agents *a, int64_t ms);

// For decisions. Strings are copied to the arena; a pod that was never here gives a zeroed *ret.
void agents_facts(const struct agents *a, const char *pod_uid, const char *group_uid, struct arena *arena,
                  struct agent_facts *ret);
// A GPU of this pod fell off the bus, with or without ranks that use it.
bool agents_gpu_lost(const struct agents *a, const char *pod_uid);
struct agent_group {
    const char *uid;
    enum agent_state state;
    int32_t attempt;
};
// The groups that the agent of this pod knows of.
size_t agents_groups(const struct agents *a, const char *pod_uid, struct arena *arena, struct agent_group **ret);
// In how many pods processes of this group may run, by the last that their agents have said.
size_t agents_running(const struct agents *a, const char *group_uid);
// ERR_UNAVAILABLE: not connected; else what the connection says. Sets `sent` in the facts.
int agents_command(struct agents *a, const char *pod_uid, const char *group_uid, int32_t attempt, uint8_t type,
                   const char *body, struct err *err);
// The body of a KILL.
char *agents_kill_body(const char *group_uid, uint32_t attempt, uint32_t rank, struct arena *a);
// Ends a process of that attempt at once (0: whichever there is); its EXITED follows, or kill_refused(). No part of
// what decides about the group: facts do not show it. Errors as of agents_command().
int agents_kill(struct agents *a, const char *pod_uid, const char *group_uid, uint32_t attempt, uint32_t rank,
                struct err *err);
// Whether agents shall send what processes of this group print; now, and whenever one connects.
void agents_listen(struct agents *a, const char *group_uid, bool on);
// Its WELCOME was sent, before which it takes nothing: it hears to whose output somebody listens.
void agents_welcomed(const struct agents *a, const struct agent *g);
// Whose pod it is, if its agent is connected; borrowed until it goes. NULL: it is not.
const struct agent_identity *agents_sight(const struct agents *a, const char *pod_uid);
void agents_each(const struct agents *a, void (*fn)(void *ctx, const char *pod_uid), void *ctx); // that is connected
void agents_metrics(const struct agents *a, struct buf *out); // of the GPUs in pods of agents that are connected
size_t agents_count(const struct agents *a);                  // connected now
// Those that are connected longest, at most `max` of them; returns how many.
size_t agents_witnesses(const struct agents *a, struct agent_witness *ret, size_t max);
