// SPDX-License-Identifier: Apache-2.0
// One client: its calls by the ids that it chose, and the memory that they use. It may call the groups of one
// namespace; this was checked before the session began. session.h has its events.
#pragma once

#include "common/wire/call_head.h"
#include "operator/proxy/router_state.h"

// Sums over the calls of a session. A call counts until all ranks have answered it. This may be after the
// session has ended.
struct session_order {
    unsigned refs;
    uint32_t lasting;   // calls that other calls may overtake on the way to a rank
    size_t bookkeeping; // bytes that are charged for the calls themselves, their records and short bodies
};

struct session {
    struct peer peer;
    struct quota *quota; // also of the reader of its connection
    bool whole;          // set by the owner: it takes no results in pieces
    bool code;           // set by the owner: its client may let workers run code of its own
    // private
    struct router *router;
    struct tenant *tenant;            // of its namespace
    char group[GROUP_KEY_SIZE];       // key of the group for calls that name none; "" = none
    struct idmap calls;               // without an answer, by the client's id
    struct list open;                 // calls without an answer, except those in `answering`
    struct list answering;            // calls with a part of their answer in the queue, or sent
    struct list group_changes, kills; // without an answer
    uint32_t n_kills;
    struct list blocked_calls; // complete calls behind an incomplete body, by seq
    struct list listening;     // output.h
    struct list stopped;       // in the router's list while the session is not read
    uint32_t n_streams;        // calls whose arguments are arriving and go on to ranks
    struct session_order *order;
    // The group of the last call that named its group without a namespace; NULL = none. The next call to the same group
    // needs no key and no look-up: 12 ns of the 0.6 us of CPU time that it costs the proxy (bench/calls).
    struct group *found;
    uint64_t found_at; // router.n_group_changes when it was found
    // Bytes of results that wait for other ranks, and of rows that padding will repeat, of all its calls.
    size_t parked;
    size_t waiting;        // bytes of calls that wait for their group or a slot
    struct map objects;    // by the text of a reference that it made and that is not pinned: the number of its parts
    size_t n_object_parts; // parts of them all
    struct idmap waits;    // wait_queue.h, by the serial number of the group
    struct list ended;     // in its namespace's list after it has ended, while its calls are ended
};

void session_order_unref(struct session_order *o);

int session_send(struct session *s, const struct record_header *h, const struct record_part *parts, size_t n);
int session_copy(struct session *s, const struct record_header *h, const void *body, size_t len);
// Sends an ERROR for a call of the client. `unsent`: certainly no rank has begun to run it. `again`: its method may run
// again.
void session_fail(struct session *s, uint32_t id, const struct call_failure *f, const char *trace, bool unsent,
                  bool again);
// Sends a RESULT of the group, copied.
void session_answer(struct session *s, uint32_t id, const char *json, size_t len);
// Sends an ERROR for a request that did not become a call.
void session_refuse(struct session *s, uint32_t id, const struct err *err);
// The group that a request names, or the session's default. NULL: ERR_FORBIDDEN, ERR_INVALID, ERR_NOT_FOUND.
struct group *session_group(struct session *s, const struct call_head *head, struct err *err);
void session_flow(struct session *s); // decides whether the session is read
// False: the client leaves so many answers unread that not even the rest of a body that has begun is read (peer.h).
bool session_takes_body(const struct session *s);
bool session_ended(const struct session *s);
