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
    // As it was asked
    uint32_t id;               // that the client gave it
    uint32_t rank;             // RECORD_GROUP or one
    uint8_t dispatch, execute; // 0 = as the method was registered, until it is resolved
    bool quiet;                // no result is wanted, only that it ended
    bool refuse;               // rather than to wait
    bool ruled, pad;           // the head has `split` or `collect`; it has `pad`
    bool positional;           // the head has `positional`
    bool keep, pin;     // results stay on the workers (remote_object.h); cleared once the client has the reference
    int64_t attempt;    // 0 = any
    int64_t timeout_ms; // 0 = none
    uint32_t world;     // of the group when it came
    uint32_t n_above;   // slots that are held by methods that wait for it (task.h)
    // As it was resolved
    bool single;    // one rank's result is the answer, and no list
    uint8_t lane;   // of its method, as the members have it
    bool again;     // the method declared that it may run again
    uint32_t first; // the rank, of those that get it, with the lowest number
    char method[CALL_HEAD_METHOD_MAX + 1];
    char role[CALL_HEAD_ROLE_MAX + 1]; // "" = none
    char trace[TRACEPARENT_LEN + 1];   // "" = none
};

// Now; once the group is ready and no earlier call of the session waits for it; once there is a slot.
enum verdict { VERDICT_GO, VERDICT_WAIT, VERDICT_QUEUE };

void request_read(const struct record_header *h, const struct call_head *head, const struct group *g,
                  struct request *ret);
// The most ranks that can get it.
uint32_t request_ranks(const struct request *q);
// An enum verdict, or an error for the client. `s`: it must not overtake what that session has waiting; NULL = it is
// its turn. `queued`: it is the first of those that wait for a slot.
int request_resolve(struct request *q, const struct group *g, const struct session *s, bool queued, struct err *err);
// Why it waits, for people.
void request_explain_wait(const struct request *q, const struct group *g, struct buf *out);
