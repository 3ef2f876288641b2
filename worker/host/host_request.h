// SPDX-License-Identifier: Apache-2.0
// One CALL of a session, from its record to its answer. It waits until its rank is free, runs on the executor, can be
// canceled, and has a deadline. Used from the loop's thread.
#pragma once

#include "common/base/free_list.h"
#include "common/wire/blob.h"
#include "common/wire/call_head.h"
#include "common/wire/record.h"
#include "worker/host/host_call.h"
#include "worker/host/method_executor.h"
#include "worker/host/objects.h"
#include "worker/host/roles.h"

struct host_request;

struct request_what { // what the head of a CALL says
    const struct role *role;
    const cadre_method *method;
    int64_t timeout_ms; // 0 = none
    bool keep, pin;     // keep: the result stays here; pin: it also stays when its session ends
};

struct request_owner {
    struct loop *loop;
    struct method_executor *executor;
    struct roles *roles;
    struct nested_client *client; // for calls that methods make; NULL = methods cannot make calls
    struct objects *objects;      // NULL = nothing can be kept or fetched
    // Called exactly once for each request, unless it is abandoned. `ok`: the body is the body of a RESULT, else of an
    // ERROR. After a deadline, the method may still run, but the owner has no request any more. May be called inside
    // host_request_start() and host_request_cancel(). The callee may take the body out of its buffer.
    void (*answer)(struct request_owner *owner, struct host_request *request, bool ok, struct buf *body);
    struct memory *memory;   // for long results, if the owner sends them in shared memory; NULL = it does not
    struct free_list unused; // memory of requests that are over; the owner calls free_list_done()
};

struct host_request {
    struct list link; // for the owner; not in a list any more when `answer` returns
    uint32_t id;
    uint64_t seq; // of its record
    bool quiet;   // for the owner: it does not send the result; set before the start
    bool waits;   // for the owner: it has not been started
    bool ordered; // for the owner: it waits until all calls with earlier records have arrived completely
    bool code;    // its client has the right to send code
    // private
    struct request_owner *owner; // NULL = nobody waits for the answer
    struct request_what what;
    struct executor_job job;
    bool submitted;
    struct blob *body, *tail;
    struct area *area;           // of the memory in which its result may be
    struct cow_args *cow_args;   // its arguments, if the program uses them without a copy; NULL = it does not
    struct arg_refs *refs;       // the references in its arguments, NULL = none
    struct loop_timer *deadline; // NULL = none
    struct cadre_call call;      // the last member, because it is not zeroed with the others: call_init() does that
};

// `head` is the head of the CALL with this body. Takes a reference to the body. If the body ends with the head, `tail`
// has the arguments (else NULL), and the request takes a reference to it, too. ERR_INVALID, ERR_NOT_FOUND, ERR_PROTO.
// ERR_CONFLICT: the call would wait for a method that waits for this call. The deadline starts now.
int host_request_new(struct request_owner *owner, uint32_t id, uint64_t seq, const struct call_head *head,
                     struct blob *body, struct blob *tail, struct host_request **ret, struct err *err);
// For arguments that contain references. After an error the request cannot run: abandon it.
int host_request_fetch_args(struct host_request *r, struct err *err);
void host_request_start(struct host_request *r); // hands it to the executor
// If the method has not begun, the request is answered at once. If it runs, it can see that the call is canceled, and
// the request is answered when the method returns.
void host_request_cancel(struct host_request *r, int code, const char *why);
void host_request_abandon(struct host_request *r); // it will not be answered, and no longer belongs to the owner

// For a method without a C function, which the program runs itself. Call host_request_begin() on the thread that pulled
// the job. It makes the arguments ready. If it returns false, the method must not run: finish the job at once. After
// the method, on any thread: call host_request_fail() if it failed, with the message in the call; then
// host_request_end(); then finish the job. host_request_fail() copies the name and the cause of the error
// (host_call.h). NULL = "FAILED" and no cause.
bool host_request_begin(struct host_request *r);
// Call this after host_request_begin(). The program may keep the arguments (cow_args.h). NULL: it has to copy what it
// wants to keep.
struct cow_args *host_request_own_args(struct host_request *r);
void host_request_fail(struct host_request *r, const char *name, const char *cause, bool ran);
void host_request_end(struct host_request *r);
