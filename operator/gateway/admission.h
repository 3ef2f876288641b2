// SPDX-License-Identifier: Apache-2.0
// Asks the authority whether a client may call. The number of questions and their time are bounded, and each gets
// exactly one answer.
#pragma once

#include "common/base/err.h"
#include "common/ws/ws_server.h"
#include "operator/gateway/alarm.h"

#include <stdbool.h>

struct admission {
    bool settled; // there is an answer: err.code 0 = admitted
    struct err err;
    int64_t expires_ms; // Unix time, 0 = no end
    char *user;         // whole: two names may differ at the end only; NULL = not known
    char *subject;      // as in struct client_user; NULL = nobody is to be asked
    bool code;          // as in struct client_user
    // private
    struct gateway *gateway;
    struct alarm alarm;
    uint64_t id;
    bool asking;  // inside the authority's function
    bool pending; // counted
    void (*then)(struct admission *a);
};

// Asks. `then` is called once when the answer comes later, and not when it is there already on return.
void admission_ask(struct admission *a, struct gateway *g, const char *token, const char *ns,
                   void (*then)(struct admission *a));
void admission_done(struct admission *a); // the same, and gives back what it holds
// Milliseconds until what was admitted ends, at least 0; -1 = it does not.
int64_t admission_left_ms(const struct admission *a);
// The token of a client's "Authorization: Bearer ..."; NULL = there is none, or nobody asks for it.
const char *admission_token(const struct gateway *g, struct ws_request *r);
bool admission_is_open(const struct gateway *g, const struct ws_request *r); // its peer needs no token
