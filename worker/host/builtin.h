// SPDX-License-Identifier: Apache-2.0
// Calls that the host itself answers, on the loop's thread: object.*, worker.stack and worker.debug.
#pragma once

#include "common/wire/call_head.h"
#include "worker/host/host_request.h"

struct builtin_answer {
    struct objects_answer object; // the answer, if it is an object: the caller owns its blob and its values
    struct buf text;              // else the answer, as JSON
};

// `head` is the head of the CALL with this body. `tail` has the arguments that are in shared memory (or NULL). Returns
// false if the call is for another method. Returns true with an error if the call is refused. `code`: the client has
// the right to send code. Call builtin_answer_done() in any case.
bool builtin_serve(struct request_owner *owner, struct quota *quota, const struct call_head *head, struct blob *body,
                   struct blob *tail, bool code, struct builtin_answer *ret, struct err *err);
void builtin_answer_done(struct builtin_answer *answer);
