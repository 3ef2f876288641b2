// SPDX-License-Identifier: Apache-2.0
// One call of a client: what it waits for, the ranks that have it, and their answers. It gets exactly one answer. Some
// calls are answered early: by a deadline, a cancel, or the error of another rank. Such a call stays until every rank
// that has it has answered too. A late answer can therefore not be taken for the answer of another call.
#pragma once

#include "common/wire/record_stream.h"
#include "operator/proxy/body.h"
#include "operator/proxy/request.h"
#include "operator/proxy/session_state.h"
#include "operator/proxy/stats.h"

// The lint (tests/lint/lint.py) checks that only the named files use the private parts.

// The result of one rank. Private to answer.c.
struct rank_result {
    bool paused;        // the rank was told to pause it
    struct blob *blob;  // contains it; NULL = answer.gathered does
    size_t offset, len; // where it is
};

// A rank that has the call, and its result until all results are there.
struct call_rank {
    struct list pending; // in the member's list while it has not answered
    struct call *call;
    struct member *member;        // NULL once it has answered, or is lost
    bool unsent;                  // it has received nothing of the call, and never will
    bool passes;                  // its result comes in pieces (result.c)
    struct record_stream sending; // private to call.c: the call on its way to the rank
    struct rank_result result;
};

// The states of a call. call_become() alone changes them. docs/architecture.md has the picture.
enum call_state {
    CALL_NEW,       // the call has arrived, and nothing was decided
    CALL_BLOCKED,   // it waits behind a body of its client that has not arrived completely
    CALL_WAITING,   // it waits for its group, for an earlier call of its client, or until its long arguments are ready
    CALL_QUEUED,    // it waits for a slot of any rank (task.h), then until its long arguments are ready
    CALL_STREAMING, // its ranks have the beginning of it, and the rest of its arguments follows
    CALL_RUNNING,   // its ranks have it, or the rest of its arguments was dropped because the call is about to end
    CALL_ANSWERED,  // its client has the answer, or wants none. The call stays until each of its ranks has answered
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
    struct args_rest *rest;     // parked: what follows `body`; NULL = nothing of it has arrived
    size_t want;                // parked: the call can be sent once this many bytes are in `body`
    size_t charged;             // to the session, while they wait
    struct split_stream *split; // splits a batch that passes, until all of it has arrived; NULL = nothing is split
    size_t repeated;            // bytes that `split` keeps until padding repeats them
};

// The answer of a call, until its client has it. Private to answer.c: all others call the functions of answer.h.
struct answer {
    struct record_stream stream; // the result of a single rank, or the joined one, on its way to the client
    struct blob *gathered;       // results that arrived in a reader's input, one behind the other
    size_t parked;               // bytes of results that wait for the results of other ranks
};

struct call {
    struct router *router;
    struct session *session; // NULL once it is answered (call_answered())
    struct quota *quota;
    struct tenant *tenant;       // the session's
    struct session_order *order; // the session's
    struct group *group;         // valid until it is answered
    enum call_state state;
    uint32_t id;  // workers know the call under this number; 0 until it was sent
    bool lasting; // later calls may overtake a part of it. Ranks are told to keep the order of those later calls
    bool refs;    // its arguments contain references, which its ranks look up
    uint64_t seq;
    struct list of_group; // in the group's list until it is answered
    struct list open;     // in one of the session's lists until it is answered
    // In the list in which it waits: the session's `blocked_calls`, a wait queue, or the group's `tasks`.
    struct list link;
    struct wait_queue *queue; // NULL unless it is CALL_WAITING
    struct list flowing; // in the router's list while a client or rank was told to pause, or results are being joined
    struct deadline deadline;
    int64_t begun_ms; // set if its client gave a deadline
    struct args args;
    struct answer answer;
    struct preparation *preparation; // private to delivery.c: long arguments that are being split; NULL = none
    struct join *join;               // private to join.c: the results that are being joined; NULL = none
    struct dispatch_plan *plan;      // from when it is sent until it is answered; NULL if its modes need none
    struct blob *frees;              // private to remote_object.c: the body of object.free; NULL = another method
    uint32_t n, left;                // ranks that have got it; ranks that have not answered
    uint32_t n_ranks;                // ranks that will get it
    // Bytes that are charged for the call and its records in the queues of its ranks, and how many of them are for
    // copies.
    size_t charged, copies;
    size_t bookkeeping;     // the part of `charged` that does not pause its client
    struct stats_call stat; // until it is answered
    struct request req;     // call_new() sets all members above to 0
    struct call_rank ranks[];
};

// Offsets in router.marks, and a length
enum { CALL_MARK_OPEN, CALL_MARK_COMMA, CALL_MARK_CLOSE, CALL_MARK_NULL, CALL_MARK_NULL_LEN = 4 };

// `copied`: bytes of its body, if the body has to be copied. NULL: over the session's memory.
struct call *call_new(struct session *s, const struct request *q, struct group *g, size_t copied);
// Notes how much is charged for it now.
void call_set_charged(struct call *c, size_t charged);
// Charges copies of its body, or the lists of its parts, until the call is over. False: no room.
bool call_pays_copies(struct call *c, size_t bytes);
// Returns the work to send the call or to end it, in calls of one rank.
unsigned call_work(const struct call *c);
// Changes the state, and removes the call from the list in which it waits. A caller that lets it wait puts it into
// another list.
void call_become(struct call *c, enum call_state next);
bool call_answered(const struct call *c); // its client has the answer, or wants none

// Queues the call for `m`, the next rank that gets it: the parts, or a copy of `copied` if that is not NULL.
// CALL_STREAMING: more of the arguments follows. Errors of the rank's queue.
int call_rank_begin(struct call *c, struct member *m, const struct record_header *h, const struct record_part *parts,
                    size_t n, const struct call_body *copied, struct err *err);
// The rank with this worker if it has the call and has not answered, else NULL.
struct call_rank *call_rank_of(struct call *c, const struct member *m);
// Sends the rank a further part of the arguments. Nothing happens if the rank does not have the call any more.
// ERR_THROTTLED, ERR_LIMIT.
int call_rank_send(struct call_rank *rank, const struct record_part *part, struct err *err);
void call_rank_send_end(struct call_rank *rank);      // the last part was sent
size_t call_rank_waits(const struct call_rank *rank); // bytes of the call that wait for the rank to read them
bool call_rank_has_all(const struct call_rank *rank); // all of the call was sent to the rank
// The connection ends: sets `unsent` if no byte of the call went out. The call then leaves the queue, because a
// connection that closes may still send its queue.
void call_rank_note_unsent(struct call_rank *rank);
// Takes the call out of the rank's queue again. False: a part of it went out.
bool call_rank_withdraw(struct call_rank *rank);
// Tells a rank that has a part of the call that no more comes, and ends it.
void call_rank_drop(struct call_rank *rank);
bool call_rank_ends(struct call_rank *rank); // the rank sends no more. Returns whether the client still waits
// Returns true if the sender of a body has to change when `waits` bytes of the body wait: to pause, or to go on if it
// is `paused`.
bool call_flow_changes(const struct call *c, bool paused, size_t waits);
// Returns how long the call may wait in its present state; 0 = no deadline.
int64_t call_patience_ms(const struct call *c);
void call_free_if_over(struct call *c); // if it is answered and no rank still runs it
