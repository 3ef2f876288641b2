// SPDX-License-Identifier: Apache-2.0
// One CALL of a session, from its record to its one answer: it waits its turn, runs on the executor, can be canceled,
// and has a deadline. Used from the loop's thread.
#pragma once

#include "common/base/reuse.h"
#include "common/wire/blob.h"
#include "common/wire/call_head.h"
#include "common/wire/record.h"
#include "worker/host/host_call.h"
#include "worker/host/method_executor.h"
#include "worker/host/objects.h"
#include "worker/host/roles.h"

struct request;

struct request_what { // the head of a CALL says
    const struct role *role;
    const cadre_method *method;
    int64_t timeout_ms; // 0 = none
    bool keep, pin;     // the result stays here; also when the session that wants it ends
};

struct request_owner {
    struct loop *loop;
    struct executor *executor;
    struct roles *roles;
    struct nested_client *client; // for calls that methods make; NULL = they cannot
    struct objects *objects;      // NULL = nothing can be kept or fetched
    // Exactly once a request, unless it is abandoned. `ok`: body of a RESULT, else of an ERROR. It may still run after
    // that (a deadline), but is no more the owner's. May come inside request_start() and request_cancel(). The body may
    // be taken out of its buffer.
    void (*answer)(struct request_owner *owner, struct request *request, bool ok, struct buf *body);
    struct memory *memory; // for long results, where the owner takes them in there; NULL = it does not
    struct reuse spare;    // requests that are over; the owner calls reuse_done()
};

struct request {
    struct list link; // for the owner; must be out of its list when `answer` returns
    uint32_t id;
    uint64_t seq; // of its record
    bool quiet;   // for the owner, who sends no result; set before it starts
    bool waits;   // for the owner: it has not been started
    bool ordered; // for the owner: it waits until those whose records came before are whole
    bool code;    // its client has the right to send code
    // private
    struct request_owner *owner; // NULL: nobody waits for the answer any more
    struct request_what what;
    struct executor_job job;
    bool submitted;
    struct blob *body, *tail;
    struct area *area;           // of the memory that its result may be in
    struct stretch *stretch;     // its arguments, where the program has them without a copy; NULL = it does not
    struct arg_refs *refs;       // what references in its arguments stand for, NULL = there are none
    struct loop_timer *deadline; // NULL = none
    struct cadre_call call;      // last, because it is not zeroed with the rest: call_init() does that
};

// `head`: of the CALL with this body. Takes references to the body and, where that ends with the head, to the arguments
// (else NULL). ERR_INVALID, ERR_NOT_FOUND, ERR_PROTO, and ERR_CONFLICT where it would wait for a method that waits for
// it: then there is no request. The deadline counts from here.
int request_new(struct request_owner *owner, uint32_t id, uint64_t seq, const struct call_head *head, struct blob *body,
                struct blob *tail, struct request **ret, struct err *err);
// For arguments that contain references. On an error the request cannot run: abandon it.
int request_fetch_args(struct request *r, struct err *err);
void request_start(struct request *r); // hands it to the executor
// A request that has not begun is answered at once. If the method runs, it can see that it is canceled, and the request
// is answered when it returns.
void request_cancel(struct request *r, int code, const char *why);
void request_abandon(struct request *r); // it is not answered, and no longer belongs to the owner

// For a method without a C function, which the program runs itself. request_begin() makes the arguments ready; call it
// on the thread that pulled the job. False: the method must not run; finish the job at once. After the method, on any
// thread: if it failed, request_fail(), with the message in the call; then request_end(); then finish the job. The name
// and the cause of the error (host_call.h) are copied; NULL = "FAILED" and no cause.
bool request_begin(struct request *r);
// After request_begin(): the program may keep the arguments (stretch.h). NULL: it has to copy what it wants to keep.
struct stretch *request_own_args(struct request *r);
void request_fail(struct request *r, const char *name, const char *cause, bool ran);
void request_end(struct request *r);
