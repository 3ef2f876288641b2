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

// A rank that runs the call, and its result until all are there.
struct call_slot {
    struct list pending; // in the member's list while it has not answered
    struct call *call;
    struct member *member;     // NULL once it has answered, or is lost
    struct blob *blob;         // of the result; NULL = call->gathered
    size_t offset, len;        // of the result
    struct record_stream args; // on their way to it
    bool unsent;               // its connection ended before anything of the call went out
    bool passes, paused;       // its result comes in pieces; it was told to send no more of it for now
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

// The arguments of a call (args.h). They are dropped once they are sent or the call is answered.
struct args {
    bool partial;                    // parked: `body` contains a part of the arguments
    bool paused;                     // the client was told to pause
    bool refs;                       // they contain references, which the ranks look up
    struct blob *body;               // while they wait ...
    size_t before, behind;           // ... and bytes in it that are something else
    struct preparation *preparation; // of long ones (delivery.h)
    struct args_rest *rest; // parked: what follows `body`, from what lies in shared memory on; NULL = nothing has come
    size_t want;            // parked: the call can be sent once this many bytes have arrived
    size_t charged;         // to the session, while they wait
    struct split_stream *split; // of a batch that passes, until it is all there
};

// What there is of its answer (answer.h), until its client has it.
struct answer {
    struct record_stream stream; // of a single rank, or joined, on its way to the client
    struct join *join;           // of results that are joined; NULL = not yet
    struct blob *gathered;       // results that came in a reader's input, one behind the other
    size_t parked;               // bytes of results that wait for those of other ranks
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
    struct dispatch_plan *plan; // of the modes that need one, from when it is sent until it is answered
    uint32_t n, left;           // ranks that have it; those that have not answered
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

struct call_slot *call_slot_of(struct call *c, const struct member *m); // NULL: no answer of this rank is awaited
// Something more of the arguments for the rank with this slot; nothing happens where it does not have the call any
// more. ERR_THROTTLED.
int call_slot_send(struct call_slot *slot, const struct record_part *part, struct err *err);
bool call_slot_ends(struct call_slot *slot); // it will send no more; returns whether the client still waits
struct record_part call_slot_result(const struct call_slot *slot); // that is kept in it

// The next part of an answer that goes to the client while the rest of it is to come; nothing happens once the client
// has gone. Errors of the client's queue.
int call_answer_part(struct call *c, uint32_t rank, const struct record_part *part, bool first, struct err *err);
void call_parks(struct call *c, size_t bytes); // this many bytes wait for slow ranks. The client is read all the same
// Whether the sender of a body has to change from sending to pausing, or back, if `waits` bytes of the body wait.
bool call_turns(const struct call *c, bool paused, size_t waits);
// How long it waits as it is now. 0 = no deadline.
int64_t call_patience_ms(const struct call *c);
void call_free_if_over(struct call *c); // frees it if it is answered and no rank still runs it
