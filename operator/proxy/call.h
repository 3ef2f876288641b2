// SPDX-License-Identifier: Apache-2.0
// One call of a client: what it waits for, the ranks that have it, and their answers. It gets exactly one answer. A
// call that was answered early (deadline, cancel, another rank's error) stays until every rank that has it has
// answered, too, so that a late answer cannot be taken for the answer of another call.
#pragma once

#include "common/wire/record_stream.h"
#include "operator/proxy/body.h"
#include "operator/proxy/request.h"
#include "operator/proxy/session_state.h"
#include "operator/proxy/stats.h"

// A rank that has the call, and its result until all results are there.
struct call_slot {
    struct list pending; // in the member's list while it has not answered
    struct call *call;
    struct member *member; // NULL once it has answered, or is lost
    bool unsent;           // it has received nothing of the call, and never will
    bool passes;           // its result comes in pieces (result.c)
    // private to call.c
    struct record_stream stream; // the call on its way to the rank
    // private to answer.c
    bool paused;        // it was told to pause its result
    struct blob *blob;  // contains the result; NULL = answer.gathered does
    size_t offset, len; // of the result
};

// What becomes of it, by call_become() alone. docs/architecture.md has the picture.
enum call_state {
    CALL_NEW,     // it has come, and nothing was decided
    CALL_BLOCKED, // it waits behind a body of its client that has not all come
    CALL_WAITING, // for its group, for an earlier call of its client that waits, or until its long arguments are ready
    CALL_QUEUED,  // for a slot of any rank (task.h), then until its long arguments are ready
    CALL_STREAMING, // its ranks have the beginning of it, and more of its arguments is to come
    CALL_RUNNING,   // its ranks have it
    CALL_ANSWERED,  // its client has the answer, or wants none; it stays until each of its ranks has answered
};

struct dispatch_plan;
struct wait_queue;
struct split_stream;
struct args_rest;
struct preparation;
struct join;

// The arguments of a call. They are dropped once they are sent or the call is answered. Private to args.c: all others
// call the functions of args.h.
struct args {
    bool partial;               // parked: `body` contains a part of the arguments
    bool paused;                // the client was told to pause
    struct blob *body;          // contains the arguments while they wait
    size_t before, behind;      // bytes at both ends of `body` that are something else
    struct args_rest *rest;     // parked: what follows `body`; NULL = nothing has arrived that does
    size_t want;                // parked: the call can be sent once this many bytes are in `body`
    size_t charged;             // to the session, while they wait
    struct split_stream *split; // splits a batch that passes, until all of it has arrived; NULL = nothing is split
};

// The answer of a call, until its client has it. Private to answer.c: all others call the functions of answer.h.
struct answer {
    struct record_stream stream; // the result of a single rank, or the joined one, on its way to the client
    struct blob *gathered;       // results that arrived in a reader's input, one behind the other
    size_t parked;               // bytes of results that wait for the results of other ranks
};

struct call {
    struct router *router;
    struct session *session; // NULL once it is answered
    struct quota *quota;
    struct tenant *tenant;       // of its session
    struct session_order *order; // of its session
    struct group *group;         // valid until it is answered
    enum call_state state;
    uint32_t id;  // workers know the call by it; 0 until it was sent
    bool lasting; // a part of it may be overtaken, so those behind it are told to keep the order
    bool refs;    // its arguments contain references, which its ranks look up
    uint64_t seq;
    struct list of_group;     // in the group's list until it is answered
    struct list open;         // in one of the session's lists until it is answered
    struct list link;         // where it waits: in the session's `blocked_calls`, its `queue` or the group's `tasks`
    struct wait_queue *queue; // while it is CALL_WAITING
    struct list flowing;      // in the router's list while somebody was told to pause some of it
    struct deadline deadline;
    int64_t begun_ms; // where its client gave a deadline
    struct args args;
    struct answer answer;
    struct preparation *preparation; // private to delivery.c: long arguments that are being split; NULL = none
    struct join *join;               // private to join.c: the results that are being joined; NULL = none
    struct dispatch_plan *plan;      // of the modes that need one, from when it is sent until it is answered
    uint32_t n, left;                // ranks that have it; those that have not answered
    uint32_t n_slots;
    size_t charged, copies; // for all of this, and for its place in the queues of its ranks; of that, for copies
    struct stats_call stat; // until it is answered
    struct request req;     // what is above it begins as 0
    struct call_slot slots[];
};

// Stretches of router.marks
enum { CALL_MARK_OPEN, CALL_MARK_COMMA, CALL_MARK_CLOSE, CALL_MARK_NULL, CALL_MARK_NULL_LEN = 4 };

// `copied`: bytes of its body, where that has to be copied. NULL: over the session's memory.
struct call *call_new(struct session *s, const struct request *q, struct group *g, size_t copied);
bool call_pays_copies(struct call *c, size_t bytes); // of its body, until it is over. False: no room
// The next state. It leaves the list in which it waits; the caller that lets it wait puts it into another.
void call_become(struct call *c, enum call_state next);

// Queues the call for `m`, the next rank that gets it, in a new slot: the parts of blobs, or a copy of `copied` if it
// is not NULL. CALL_STREAMING: more of the arguments follows. Errors of the rank's queue.
int call_slot_begin(struct call *c, struct member *m, const struct record_header *h, const struct record_part *parts,
                    size_t n, const struct call_body *copied, struct err *err);
// The slot of a rank that has to answer, else NULL.
struct call_slot *call_slot_of(struct call *c, const struct member *m);
// Sends the rank a further part of the arguments. Nothing happens if the rank does not have the call any more.
// ERR_THROTTLED.
int call_slot_send(struct call_slot *slot, const struct record_part *part, struct err *err);
void call_slot_send_end(struct call_slot *slot);      // that was the last part
size_t call_slot_waits(const struct call_slot *slot); // bytes of the call that wait for the rank to read them
bool call_slot_has_all(const struct call_slot *slot); // all of the call was sent to the rank
void call_slot_note_unsent(struct call_slot *slot);   // the connection ends: sets `unsent`
bool call_slot_withdraw(struct call_slot *slot);      // takes the call out of the queue again. False: some was sent
void call_slot_drop(struct call_slot *slot);          // tells a rank that has a part of the call that no more comes
bool call_slot_ends(struct call_slot *slot);          // the rank sends no more. Returns whether the client still waits
// Whether the sender of a body has to change from sending to pausing, or back, if `waits` bytes of the body wait.
bool call_turns(const struct call *c, bool paused, size_t waits);
// How long it waits as it is now. 0 = no deadline.
int64_t call_patience_ms(const struct call *c);
void call_free_if_over(struct call *c); // frees it if it is answered and no rank still runs it
