// SPDX-License-Identifier: Apache-2.0
// One call of a method: the opaque cadre_call of the ABI, and the JSON documents of CALL, RESULT and ERROR records.
//
//   CALL head   {"method": "add", "role": "actor", "timeoutMs": 5000}       without timeoutMs: no deadline
//   arguments   {"x": 10}, [10], nothing at all, or a batch: a safetensors document
//   RESULT      the value, or a batch
//   ERROR       {"code": "INVALID", "message": "add() needs an argument 'x' (position 0)"}
//
// Codes are the names of `enum err_code`. Two more codes come only from methods: FAILED (cadre_fail) and NO_DEVICE.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/json.h"
#include "common/wire/batch.h"
#include "common/wire/traceparent.h"
#include "worker/host/call_device.h"
#include "worker/host/nested.h"
#include "worker/host/result_batch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define CALL_RESULT_MAX ((size_t)2 << 30) // the limit of the protocol
#define CALL_MESSAGE_MAX 4095
#define CALL_CAUSE_MAX ((size_t)48 << 10)
#define CALL_FIRST 640

struct call_names { // the names of all arguments that a method takes
    const char *items[64];
    size_t n;
};

struct cadre_call {
    const char *args;   // borrowed
    size_t args_len;    // of all arguments; if their values are on the device, `args` has only the head
    const char *method; // its name, for messages
    char trace[TRACEPARENT_LEN + 1];
    struct arena arena;      // holds the tree of the arguments and strings from it; begins in `first`
    struct json *root;       // NULL if the arguments are a batch
    struct batch batch;      // valid if they are a batch
    const struct json *meta; // of the batch, NULL = none
    char *aligned;           // a copy of the batch, if it is not aligned, or its values are on the device
    bool *on_host; // which tensors of `aligned` have their values, if the batch is on the device; in the arena
    struct result_batch *result_batch; // the result, if it is a batch
    atomic_bool canceled;
    struct nested nested; // calls that this method makes
    struct call_device device;
    const char *loss;  // why this process can no longer use the GPU, in the arena; NULL = it can
    bool keep;         // the result is kept here
    bool ran;          // the method has begun
    bool failed;       // if true, `code` and `message` are the answer, else `result`
    const char *code;  // static, or in the arena
    const char *cause; // of the error: a JSON object for the client, in the arena; NULL = none
    struct buf result; // empty = null, or the result is in `shared`
    struct pool *pool; // for long results; NULL = they are not shared
    char *shared;      // in the pool, NULL = none
    size_t shared_len;
    struct buf message;
    bool missing; // the message is about a missing argument
    // The call is made on one thread and used on another. This memory avoids passing memory between them. It is the
    // last member: call_init() does not clear it.
    _Alignas(max_align_t) char first[CALL_FIRST];
};

// `args` must live until call_done().
void call_init(struct cadre_call *c, const char *args, size_t len);
void call_done(struct cadre_call *c);

void call_answered(struct cadre_call *c, cadre_result r); // the method has returned this
void call_cancel(struct cadre_call *c);                   // from any thread
// Call this on the thread that ran the method, after a failure. Sets `loss` if the GPU is lost.
void call_note_loss(struct cadre_call *c);

// Moves the answer into `out`. Returns true for the body of a RESULT, false for the body of an ERROR.
bool call_encode(struct cadre_call *c, struct buf *out);
// Returns a result that is in the pool, and the caller owns it. NULL: the result is not in the pool.
char *call_take_shared(struct cadre_call *c, size_t *ret_len);
// ran: the method may have run.
void call_encode_error(struct buf *out, const char *code, const char *message, bool ran);

// For the files host_call_*: sets the error that the client gets. Returns `r`.
cadre_result call_fail(struct cadre_call *c, cadre_result r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
cadre_result call_fail_device(struct cadre_call *c, const struct err *err);
cadre_result call_missing(struct cadre_call *c, const char *name, size_t position);
bool call_names_have(const struct call_names *names, const char *name, size_t len);
// Allocates a result of this length. The caller writes it at once. The previous result is gone. NULL: it is too long.
char *call_place_result(struct cadre_call *c, size_t len);
cadre_result call_return(struct cadre_call *c, const char *body, size_t len);
// For host_request.c, before the method runs. The first two replace the arguments. After call_refuse(), the method does
// not run, and `err` is the answer.
void call_set_args(struct cadre_call *c, const char *args, size_t len);
void call_set_device_args(struct cadre_call *c, const char *head, size_t len, struct region *values);
void call_refuse(struct cadre_call *c, const struct err *err);
