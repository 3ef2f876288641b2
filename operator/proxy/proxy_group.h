// SPDX-License-Identifier: Apache-2.0
// A WorkerGroup as calls see it: what the operator knows about the object, and its connected processes, one per rank. A
// process of an older attempt is refused. A newer connection of a rank replaces the older one.
#pragma once

#include "common/base/buf.h"
#include "common/base/json_writer.h"
#include "common/wire/mesh.h"
#include "operator/proxy/member.h"
#include "operator/proxy/stats.h"

#include <stdbool.h>
#include <stdint.h>

enum { GROUP_KEY_SIZE = 192, GROUP_INFO_RANKS = 1024 };

struct group_facts { // borrowed for the call only
    const char *uid, *ns, *name;
    uint32_t world;   // at least 1
    uint32_t attempt; // the group's
    // Processes of an older attempt are refused. Equal to `attempt`, or less if ranks restart one by one.
    uint32_t oldest;
    // Why calls are refused even if they would wait (Failed, Succeeded, Suspended, being deleted). NULL = calls may
    // wait.
    const char *refusal;
    const char *status; // message of the condition Ready while it is not true; NULL = none
    const char *reason; // reason of the condition Ready, which users see as STATUS; NULL = none
    const struct mesh *meshes;
    size_t n_meshes;
    bool meshes_to_come; // no attempt has used these meshes yet: the group keeps its earlier ones, or none
};

struct group_rank {
    struct member *member; // NULL = not connected
    // The last exit that an agent reported:
    uint32_t exit_attempt; // 0 = none
    int exit_code;
    char *gpus; // a JSON list that an agent sent; NULL = none
};

// Ranks that wait for their code are not connected to the group itself, but to its bootstrap group NAME.code. This is a
// group of its own, with the same ranks, and programs call it to bring the code. It lasts as long as the group.
#define GROUP_BOOTSTRAP ".code"

struct ranking;

struct group {
    char *uid, *ns, *name;
    char key[GROUP_KEY_SIZE]; // "ns/name"
    // Different from every other group's, even from one with the same UID that is not gone yet. Never 0.
    uint32_t serial;
    uint32_t world, attempt, oldest;
    char *refusal, *status, *reason;
    struct mesh *meshes; // of the object
    size_t n_meshes;
    struct arena memory;      // of the meshes
    struct group_rank *ranks; // world size of them
    struct group *bootstrap;  // NULL = no rank has waited for code
    uint32_t n_connected;
    uint32_t last_any;       // counts calls to any rank, so that equally busy ranks take turns
    struct ranking *ranking; // of the connected members
    struct list members;     // all that refer to the group, by rank: connected, replaced, or about to be freed
    struct list calls;       // all calls without an answer
    struct list waiting;     // queues of calls that wait (wait_queue.h)
    struct list kills;       // kills that wait for the end of a process (kill.h)
    struct stats stats;
    struct list tasks[MEMBER_LANES_MAX + 1]; // calls to any rank that wait for a slot, by their lane (task.h)
    struct group_output *output;             // output.h; NULL = nobody listens
    struct list heard; // in the router's list after it got its first listener or lost its last one
    struct list stale; // in its namespace's list if it has changed, so that calls that wait can perhaps be sent
    struct list gone;  // in its namespace's list after it was deleted, while its last calls get their errors
};

struct group *group_new(const char *uid, const char *ns, const char *name, struct stats_common *stats);
void group_free(struct group *g); // no member may be connected, no call may wait
void group_key(char out[GROUP_KEY_SIZE], const char *ns, const char *name, size_t name_len);
// If the world size changes, no member may be connected.
void group_update(struct group *g, const struct group_facts *f);

// Returns 0 if the group takes calls, or ERR_UNAVAILABLE with the reason.
int group_refuses(const struct group *g, struct err *err);
// Returns 0 if the group has this rank (RECORD_GROUP = all) and attempt (0 = any); 1 if not yet, because only another
// replica of the operator has seen that attempt; ERR_INVALID (no such rank), ERR_CONFLICT (the attempt is over).
int group_serves(const struct group *g, uint32_t rank, int64_t attempt, struct err *err);
// Returns 0 if the process may be registered, ERR_CONFLICT (its attempt is too old) or ERR_INVALID (no such rank).
int group_admits(const struct group *g, const struct member *m, struct err *err);
// The bootstrap group, which is made if there is none yet: then *ret_new is true.
struct group *group_bootstrap(struct group *g, bool *ret_new);
void group_join(struct group *g, struct member *m); // registers it. No other member may be registered for its rank
void group_leave(struct member *m); // ends its registration, if it has one. The member still refers to the group

struct member *group_member_at(const struct group *g, int64_t rank); // the connected process of that rank; NULL = none
const struct member *group_first(const struct group *g);             // the first member that is connected; NULL = none
void group_gpus_set(struct group *g, uint32_t rank, const char *json); // "" = none
// The first rank of [from, from + n) that is not connected, or `world`.
uint32_t group_missing(const struct group *g, uint32_t from, uint32_t n);
// All meshes: first the ones of the object, then others that its processes published. They are in the arena, and borrow
// from the object's meshes and the processes' meshes. ERR_CONFLICT: the processes do not publish the same meshes.
int group_meshes(const struct group *g, struct arena *a, const struct mesh **ret, size_t *ret_n, struct err *err);
// Writes why the group is not ready, for messages: "ml/llama is not ready: 2 of 4 ranks are connected, missing: 1, 3".
void group_explain(const struct group *g, struct buf *out);
// The members "namespace", "name", "uid" and "replica".
void group_names_write(const struct group *g, struct json_writer *w);
// Writes the JSON of group.info. The ranks of a large group come in pages of GROUP_INFO_RANKS, each in well below 2 ms.
// This page begins with rank `from`. "next" is the rank with which the next page begins.
void group_info(const struct group *g, uint32_t from, struct buf *out);
