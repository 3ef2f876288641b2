// SPDX-License-Identifier: Apache-2.0
// The method group.kill: one rank's process ends at once, as if it had crashed, and its restart policy applies. The
// process may hang and is not asked: the agent of its pod kills it. The agent's report of its end is the answer. A kill
// is not a call of workers: it waits neither for the group nor for other calls.
#pragma once

#include "common/base/deadline.h"
#include "common/wire/call_head.h"
#include "common/wire/record.h"
#include "common/wire/traceparent.h"
#include "operator/proxy/session_state.h"

enum { KILL_WAIT_MS = 30 * 1000 }; // for the end, where the client gives no deadline

struct kill { // until it is answered
    struct session *session;
    struct group *group;
    struct list link; // in the router's list until the agent is told
    struct list of_group, of_session;
    struct deadline deadline;
    int64_t timeout_ms;
    uint32_t id; // that the client gave it
    uint32_t rank;
    uint32_t attempt; // of the process to be killed, 0 = none is connected: whichever there is ...
    uint32_t oldest;  // ... and whose end is the answer, or a later one's end ...
    uint32_t newest;  // ... or that only later ones than this can be there
    char trace[TRACEPARENT_LEN + 1];
};

// Notes it for the owner of the router. An error is the client's to hear, and nothing was noted: ERR_INVALID,
// ERR_CONFLICT, ERR_UNAVAILABLE, ERR_THROTTLED.
int kill_begin(struct session *s, struct group *g, const struct record_header *h, const struct call_head *head,
               struct err *err);
struct kill *kill_find(const struct session *s, uint32_t id); // NULL = none that is not answered
void kill_cancel(struct kill *k);                             // by the client
void kills_abandon(struct session *s); // the session ends; an agent that was told may kill the process all the same

// For the owner of the router: the next kill that an agent is to be told of; NULL = none. It is answered when the
// process has ended or the agent has refused. Its deadline may pass earlier and free it, so do not keep the pointer.
struct kill *kill_next(struct router *r);
void kill_refuse(struct kill *k, const struct err *why); // at once: there is no agent to be told
// The agent has refused later. Answers all kills of that rank.
void router_kill_refused(struct router *r, const char *group_uid, uint32_t rank, const char *why);

// For the router: the process of this rank and attempt has ended; those of the rank (RECORD_GROUP: of all) of older
// attempts than this are gone.
void kill_ended(struct group *g, uint32_t rank, uint32_t attempt);
void kills_outdated(struct group *g, uint32_t rank, uint32_t attempt);
void kills_group_ends(struct group *g); // it was deleted
// Answers at most `work` kills whose deadline has passed.
void kills_tick(struct router *r, int64_t now_ms, unsigned work);
