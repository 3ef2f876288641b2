// SPDX-License-Identifier: Apache-2.0
// A WorkerGroup as calls see it: what the operator knows about the object, and its connected processes, one per rank. A
// process of an older attempt is refused. A newer connection of a rank replaces the older one.
#pragma once

#include "common/base/buf.h"
#include "common/base/json_writer.h"
#include "common/wire/grid.h"
#include "operator/proxy/member.h"
#include "operator/proxy/stats.h"

#include <stdbool.h>
#include <stdint.h>

enum { GROUP_KEY_SIZE = 192, GROUP_INFO_RANKS = 1024 };

struct group_facts { // borrowed for the call only
    const char *uid, *ns, *name;
    uint32_t world;   // at least 1
    uint32_t attempt; // of the group
    uint32_t oldest;  // processes of an older attempt are refused: `attempt`, less where ranks restart one by one
    // Why calls are refused even if they would wait (Failed, Succeeded, Suspended, being deleted); NULL = they may
    // wait.
    const char *refusal;
    const char *status; // what the condition Ready says while it is not true; NULL = nothing
    const char *reason; // of the condition Ready, which users see as STATUS; NULL = it has none
    const struct grid *meshes;
    size_t n_meshes;
    bool meshes_to_come; // no attempt was made with them yet: those of before stay, none if they are not known here
};

struct group_rank {
    struct member *member; // NULL = not connected
    // The last exit that an agent reported
    uint32_t exit_attempt; // 0 = none
    int exit_code;
    char *gpus; // a JSON list, as an agent told it last; NULL = none
};

// Ranks that wait for their code are not connected to the group, but to its bootstrap group. That is a group of its own
// with the same ranks, NAME.code, which programs call to bring the code. It lasts as long as the group.
#define GROUP_BOOTSTRAP ".code"

struct ranking;

struct group {
    char *uid, *ns, *name;
    char key[GROUP_KEY_SIZE]; // "ns/name"
    uint32_t serial;          // unlike every other group's, even one with the same UID that is not gone yet; not 0
    uint32_t world, attempt, oldest;
    char *refusal, *status, *reason;
    struct grid *meshes; // of the object
    size_t n_meshes;
    struct arena memory;      // of the meshes
    struct group_rank *ranks; // `world` of them
    struct group *bootstrap;  // NULL = no rank has waited for code
    uint32_t n_connected;
    uint32_t last_any;       // counts calls to any rank, so that equals take turns
    struct ranking *ranking; // of those that are connected
    struct list members;     // all that refer to it, by rank: connected, replaced, or about to be forgotten
    struct list calls;       // all that are not answered
    struct list waiting;     // queues of calls that wait (wait_queue.h)
    struct list kills;       // that wait for the end of a process (kill.h)
    struct stats stats;
    struct list tasks[MEMBER_LANES_MAX + 1]; // calls to any rank that wait for a slot, by their lane (task.h)
    struct group_output *output;             // output.h; NULL = nobody listens
    struct list heard; // in the router's list after the first listener has come or the last one has left
    struct list stale; // in its namespace's list if it has changed, so that some waiting calls can perhaps be sent
    struct list gone;  // in its namespace's list: it was deleted, and its last calls are being answered
};

struct group *group_new(const char *uid, const char *ns, const char *name, struct stats_common *stats);
void group_free(struct group *g); // nobody may be connected, no call may wait
void group_key(char out[GROUP_KEY_SIZE], const char *ns, const char *name, size_t name_len);
void group_update(struct group *g, const struct group_facts *f); // of the same world, or nobody is connected

// Why no calls are taken any more: 0 = they are, ERR_UNAVAILABLE.
int group_refuses(const struct group *g, struct err *err);
// Whether what asks for this rank (RECORD_GROUP = all) and attempt (0 = any) can be had: 0, 1 = not yet, for another
// operator has seen that attempt already, ERR_INVALID (no such rank), ERR_CONFLICT (the attempt is over).
int group_serves(const struct group *g, uint32_t rank, int64_t attempt, struct err *err);
// Whether a process may take its place, by its attempt and rank: 0, ERR_CONFLICT (older), ERR_INVALID (no such rank).
int group_admits(const struct group *g, const struct member *m, struct err *err);
// Its bootstrap group. *ret_new: there was none yet.
struct group *group_bootstrap(struct group *g, bool *ret_new);
void group_join(struct group *g, struct member *m); // the place must be free
void group_leave(struct member *m);                 // gives its place back, if it has one; still refers to the group

const struct member *group_first(const struct group *g);               // that is connected; NULL = none
void group_gpus_set(struct group *g, uint32_t rank, const char *json); // "" = none
// The first rank of [from, from + n) that is not connected, or `world`.
uint32_t group_missing(const struct group *g, uint32_t from, uint32_t n);
// All meshes, those of the object first, then what its processes published besides; in the arena, borrowing from both.
// ERR_CONFLICT where the processes do not publish the same.
int group_meshes(const struct group *g, struct arena *a, const struct grid **ret, size_t *ret_n, struct err *err);
// "waits for ranks 1, 3 (2 of 4 are connected): Insufficient: ..." for messages.
void group_explain(const struct group *g, struct buf *out);
void group_names_write(const struct group *g, struct json_writer *w); // "namespace", "name", "uid", "replica"
// The JSON of group.info. Of a large group the ranks come in pages of GROUP_INFO_RANKS, each in well below 2 ms: this
// one begins with rank `from`; "next" says where the one behind it does.
void group_info(const struct group *g, uint32_t from, struct buf *out);
