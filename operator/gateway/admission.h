// SPDX-License-Identifier: Apache-2.0
// Asks the authority whether a client may call. The number of questions and their time are bounded. Each question gets
// exactly one answer.
#pragma once

#include "common/base/err.h"
#include "common/ws/ws_server.h"
#include "operator/gateway/alarm.h"

#include <stdbool.h>

struct admission {
    bool settled; // there is an answer; err.code 0 = admitted
    struct err err;
    int64_t expires_ms; // Unix time, 0 = no end
    char *user;         // the whole name, because two names may differ only at the end; NULL = not known
    char *subject;      // as in struct client_user; NULL = there is no one to ask about
    bool code;          // as in struct client_user
    // private
    struct gateway *gateway;
    struct alarm alarm;
    uint64_t id;
    bool asking;  // the authority's function is running
    bool pending; // it is counted in gateway_counters.pending
    void (*then)(struct admission *a);
};

// Asks the authority. If the answer comes later, `then` is called once. If the answer is there when this returns,
// `then` is not called.
void admission_ask(struct admission *a, struct gateway *g, const char *token, const char *ns,
                   void (*then)(struct admission *a));
void admission_done(struct admission *a); // cancels an open question, and frees its strings
// Returns the milliseconds until the admission ends, at least 0; -1 = it does not end.
int64_t admission_left_ms(const struct admission *a);
// Checks what holds for every request, also for an upgrade. ERR_FORBIDDEN: a web site sent it (browser.h).
// ERR_UNAVAILABLE: the gateway stops.
int admission_check(const struct gateway *g, struct ws_request *r, struct err *err);
int admission_no_token(struct err *err); // sets ERR_UNAUTHORIZED
// Returns the token of the header "Authorization: Bearer ..."; NULL = there is none, or none is needed.
const char *admission_token(const struct gateway *g, struct ws_request *r);
bool admission_is_open(const struct gateway *g, const struct ws_request *r); // the peer needs no token
