// SPDX-License-Identifier: Apache-2.0
// The method group.kill: the process of one rank ends at once, as if it had crashed, and its restart policy applies.
// The process may hang, so the agent of its pod kills it without asking it. The agent's report that it has ended is the
// answer. A kill is not a call of workers: it waits neither for the group nor for other calls.
#pragma once

#include "common/base/deadline.h"
#include "common/wire/call_head.h"
#include "common/wire/record.h"
#include "common/wire/traceparent.h"
#include "operator/proxy/session_state.h"

enum { KILL_WAIT_MS = 30 * 1000 }; // deadline if the client gives none

struct kill { // exists until it is answered
    struct session *session;
    struct group *group; // for a rank of a bootstrap group, the group that it belongs to
    struct list link;    // in the router's list until the agent is told
    struct list of_group, of_session;
    struct deadline deadline;
    int64_t timeout_ms;
    uint32_t id; // the client's
    uint32_t rank;
    uint32_t attempt; // of the process to be killed. 0 = none is connected: the agent kills the one that it has
    uint32_t oldest;  // the end of a process of this attempt or a later one is the answer
    uint32_t newest;  // the kill is also answered when only later attempts than this can exist
    char trace[TRACEPARENT_LEN + 1];
};

// Notes the kill for the owner of the router. Negative: nothing was noted, and the client gets the error: ERR_INVALID,
// ERR_CONFLICT, ERR_UNAVAILABLE, ERR_THROTTLED.
int kill_begin(struct session *s, struct group *g, const struct record_header *h, const struct call_head *head,
               struct err *err);
struct kill *kill_find(const struct session *s, uint32_t id); // NULL = there is none without an answer
void kill_cancel(struct kill *k);                             // by its client
void kills_abandon(struct session *s); // the session ends. An agent that was told may still kill the process

// For the owner of the router: the next kill, to be passed to an agent; NULL = none. It is answered when the process
// has ended or the agent has refused. Its deadline may pass earlier and free it, so do not keep the pointer.
struct kill *kill_next(struct router *r);
// Answers at once with an error, for example because there is no agent.
void kill_refuse(struct kill *k, const struct err *why);
// The agent has refused a kill. Answers all kills of that rank.
void router_kill_refused(struct router *r, const char *group_uid, uint32_t rank, const char *why);

// For the router. kill_ended(): the process of this rank and attempt has ended. kills_outdated(): all attempts of the
// rank (RECORD_GROUP: of all ranks) before this one are gone.
void kill_ended(struct group *g, uint32_t rank, uint32_t attempt);
void kills_outdated(struct group *g, uint32_t rank, uint32_t attempt);
void kills_group_ends(struct group *g); // the group was deleted
// Answers at most `work` kills whose deadline has passed.
void kills_tick(struct router *r, int64_t now_ms, unsigned work);
