// SPDX-License-Identifier: Apache-2.0
// Calls that the host itself answers, on the loop's thread: object.*, worker.stack and worker.debug.
#pragma once

#include "common/wire/call_head.h"
#include "worker/host/host_request.h"

struct own_answer {
    struct objects_answer object; // its blob and its values are the caller's; or
    struct buf text;              // JSON
};

// `head`: of the CALL with this body; what of its arguments lies in shared memory is in `tail` (or NULL). False: it is
// a call of another method. True and an error: it is refused. `code`: its client has the right to send code. In any
// case call own_answer_done().
bool own_serve(struct request_owner *owner, struct quota *quota, const struct call_head *head, struct blob *body,
               struct blob *tail, bool code, struct own_answer *ret, struct err *err);
void own_answer_done(struct own_answer *answer);
