// SPDX-License-Identifier: Apache-2.0
// One call of a method: the opaque cadre_call of the ABI, and the JSON documents of CALL, RESULT and ERROR records.
//
//   CALL head   {"method": "add", "role": "actor", "timeoutMs": 5000}       without timeoutMs: no deadline
//   arguments   {"x": 10}, [10], nothing at all, or a batch: a safetensors document
//   RESULT      the value, or a batch
//   ERROR       {"code": "INVALID", "message": "add() needs an argument 'x' (position 0)"}
//
// Codes are the names of `enum err_code`, and two that only methods have: FAILED (cadre_fail) and NO_DEVICE.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/json.h"
#include "common/wire/batch.h"
#include "common/wire/traceparent.h"
#include "worker/host/call_device.h"
#include "worker/host/nested.h"
#include "worker/host/returned.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define CALL_RESULT_MAX ((size_t)2 << 30) // what the protocol has
#define CALL_MESSAGE_MAX 4095
#define CALL_CAUSE_MAX ((size_t)48 << 10)
#define CALL_FIRST 640

struct call_names { // of all arguments that a method takes
    const char *items[64];
    size_t n;
};

struct cadre_call {
    const char *args;   // borrowed
    size_t args_len;    // of all of them; where their values are on the device, only the head is in args
    const char *method; // name, for messages
    char trace[TRACEPARENT_LEN + 1];
    struct arena arena;        // the tree of the arguments and strings out of them; begins in `first`
    struct json *root;         // NULL where they are a batch
    struct batch batch;        // then
    const struct json *meta;   // of the batch, NULL = none
    char *aligned;             // a copy of the batch, where it did not come aligned, or not to the host
    bool *on_host;             // those tensors of one whose values are on the device; in the arena
    struct returned *returned; // of the result, where it is a batch
    atomic_bool canceled;
    struct nested nested; // calls that the method makes
    struct call_device device;
    const char *loss;  // why the GPU is of no more use to this process, in the arena; NULL = it is
    bool keep;         // the result stays here
    bool ran;          // the method has begun
    bool failed;       // then `code` and `message` are the answer, else `result`
    const char *code;  // static, or in the arena
    const char *cause; // of the error: a JSON object for the client, in the arena; NULL = none
    struct buf result; // empty = null; not where it is in `shared`
    struct pool *pool; // for long results; NULL = they are not shared
    char *shared;      // in the pool, NULL = none
    size_t shared_len;
    struct buf message;
    bool missing; // it is about an argument that is not there
    // Made here, used by another thread: no memory to pass between them. The last: a call is not cleared from here on.
    _Alignas(max_align_t) char first[CALL_FIRST];
};

// `args` must live until call_done().
void call_init(struct cadre_call *c, const char *args, size_t len);
void call_done(struct cadre_call *c);

void call_answered(struct cadre_call *c, cadre_result r); // the method has returned this
void call_cancel(struct cadre_call *c);                   // from any thread
// On the thread that ran it, after it has failed: sets `loss` if that was the GPU.
void call_note_loss(struct cadre_call *c);

// The answer's body, which the call then has no more. True: of a RESULT, false: of an ERROR.
bool call_encode(struct cadre_call *c, struct buf *out);
// A result that is in the pool instead, which is the caller's then; NULL: it is not.
char *call_take_shared(struct cadre_call *c, size_t *ret_len);
// ran: the method may have begun.
void call_encode_error(struct buf *out, const char *code, const char *message, bool ran);

// For the files of host_call_*: the error of a call for its client. Returns `r`.
cadre_result call_fail(struct cadre_call *c, cadre_result r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
cadre_result call_fail_device(struct cadre_call *c, const struct err *err);
cadre_result call_missing(struct cadre_call *c, const char *name, size_t position);
bool call_names_have(const struct call_names *names, const char *name, size_t len);
// Where a result of this length goes, which is written there at once; NULL: it is too long. What was there before is
// gone.
char *call_place_result(struct cadre_call *c, size_t len);
cadre_result call_return(struct cadre_call *c, const char *body, size_t len);
// For host_request.c, before the method runs: it has other arguments; it does not run, `err` says why.
void call_set_args(struct cadre_call *c, const char *args, size_t len);
void call_set_device_args(struct cadre_call *c, const char *head, size_t len, struct region *values);
void call_refuse(struct cadre_call *c, const struct err *err);
