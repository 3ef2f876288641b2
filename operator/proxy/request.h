// SPDX-License-Identifier: Apache-2.0
// The request in a CALL, and its meaning for the group now: which ranks get it, in which modes, and whether they can
// have it at once. It refers to no call, because it is computed before the call exists.
#pragma once

#include "common/wire/call_head.h"
#include "common/wire/record.h"
#include "common/wire/traceparent.h"
#include "operator/proxy/proxy_group.h"

struct session;

struct request {
    // As the client sent it:
    uint32_t id;               // the client's
    uint32_t rank;             // RECORD_GROUP or a rank
    uint8_t dispatch, execute; // 0 = as the method was registered, until the request is resolved
    bool quiet;                // the client wants no result, only to know that the call has ended
    bool refuse;               // the client wants an error rather than to wait
    bool ruled, pad;           // the head has `split` or `collect`; the head has `pad`
    bool positional;           // the head has `positional`
    // Results stay on the workers (remote_object.h). `keep` is cleared once the client has the reference.
    bool keep, pin;
    int64_t attempt;    // 0 = any
    int64_t timeout_ms; // 0 = none
    uint32_t world;     // of the group when the request arrived
    uint32_t n_above;   // slots that are taken by methods that wait for this call (task.h)
    // As it was resolved:
    bool single;    // the answer is the result of one rank, not a list
    uint8_t lane;   // of its method, as the members have it
    bool again;     // the method declared that it may run again
    uint32_t first; // the lowest rank that gets it
    char method[CALL_HEAD_METHOD_MAX + 1];
    char role[CALL_HEAD_ROLE_MAX + 1]; // "" = none
    char trace[TRACEPARENT_LEN + 1];   // "" = none
};

// When the call can be sent. GO: now. WAIT: once the group is ready and no earlier call of the session waits for it.
// QUEUE: once a slot is free.
enum request_verdict { VERDICT_GO, VERDICT_WAIT, VERDICT_QUEUE };

void request_read(const struct record_header *h, const struct call_head *head, const struct group *g,
                  struct request *ret);
// The most ranks that can get it.
uint32_t request_ranks(const struct request *q);
// Resolves the request. Returns an enum request_verdict, or an error for the client. `s`: the request must not overtake
// calls of this session that wait; NULL = no earlier call waits. `queued`: it is the first of the requests that wait
// for a slot.
int request_resolve(struct request *q, const struct group *g, const struct session *s, bool queued, struct err *err);
// Writes why the call waits, for people.
void request_explain_wait(const struct request *q, const struct group *g, struct buf *out);
