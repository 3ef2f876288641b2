// SPDX-License-Identifier: Apache-2.0
// One client: its calls by the ids that it chose, and the memory that they use. It may call the groups of one
// namespace; this was checked before the session began. session.h has its events.
#pragma once

#include "common/wire/call_head.h"
#include "operator/proxy/router_state.h"

// How many of its calls may be overtaken on the way to a rank: until all ranks have answered, which may be after the
// session has ended.
struct session_order {
    unsigned refs;
    uint32_t lasting;
};

struct session {
    struct peer peer;
    struct quota *quota; // for the reader of its connection, too
    bool whole;          // set by the owner: it takes no results in pieces
    bool code;           // likewise: its client may have code of its own run by workers
    // private
    struct router *router;
    struct tenant *tenant;            // of its namespace
    char group[GROUP_KEY_SIZE];       // key of the group that calls without one go to; "" = none
    struct idmap calls;               // not answered yet, by the client's id
    struct list open;                 // the same, but for ...
    struct list answering;            // ... those a part of whose answer is in the queue, or was
    struct list group_changes, kills; // not answered yet
    uint32_t n_kills;
    struct list blocked_calls; // of those the complete ones behind an incomplete body, by seq
    struct list listening;     // output.h
    struct list stopped;       // in the router's list while it is not read
    uint32_t n_streams;        // calls whose arguments are coming in and go on to ranks
    struct session_order *order;
    struct group *found;   // by the last call that named its group in short; NULL = none ...
    uint64_t found_at;     // ... and when, in router.n_group_changes
    size_t parked;         // bytes of results that wait for other ranks, of all its calls
    size_t waiting;        // bytes of calls that wait for their group or a slot
    struct map objects;    // texts of references that it made and that are not pinned
    size_t n_object_parts; // of them
    struct idmap waits;    // wait_queue.h, by the serial number of the group
    struct list ended;     // in its namespace's list once it has: some of its calls are still to be ended
};

void session_order_unref(struct session_order *o);

int session_send(struct session *s, const struct record_header *h, const struct record_part *parts, size_t n);
int session_copy(struct session *s, const struct record_header *h, const void *body, size_t len);
// An ERROR for what the client calls by this id; `unsent`: certainly no rank has begun to run it.
void session_fail(struct session *s, uint32_t id, const struct call_failure *f, const char *trace, bool unsent,
                  bool again);
void session_answer(struct session *s, uint32_t id, const char *json, size_t len); // a RESULT of the group, copied
void session_refuse(struct session *s, uint32_t id, const struct err *err); // a request that did not become a call
// The group that a request names, or the session's default. NULL: ERR_FORBIDDEN, ERR_INVALID, ERR_NOT_FOUND.
struct group *session_group(struct session *s, const struct call_head *head, struct err *err);
void session_flow(struct session *s); // whether it is to be read
bool session_ended(const struct session *s);
