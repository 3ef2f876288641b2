// SPDX-License-Identifier: Apache-2.0
// Questions to the API server about a token, and the meaning of the answers: TokenReview (who is it?), then
// SubjectAccessReview (may it?). Pure.
#pragma once

#include "operator/api/object.h"
#include "operator/gateway/authority.h"

#include <stdbool.h>
#include <stddef.h>

// What somebody may do with objects of a namespace or not, in the API server's words and for messages.
struct right {
    enum kind kind;
    const char *verb, *subresource; // "create", "call"; NULL = the object itself
    const char *what;               // "call workers": user x may not ... in namespace y
    const char *advice;             // "bind ..."
};

const char *review_token(const char *token, const char *audience, struct arena *a); // the TokenReview to create

// The answer to it: who it is, in the arena. ERR_UNAUTHORIZED; ERR_UNAVAILABLE: the answer makes no sense.
int review_user(const char *answer, size_t len, const char *audience, struct arena *a, struct client_user *ret,
                struct err *err);

// The SubjectAccessReview to create. `name`: of the one object that it is about, NULL = any.
const char *review_of(const struct client_user *who, const struct right *right, const char *ns, const char *name,
                      struct arena *a);
// The answer to that: 0, ERR_FORBIDDEN or ERR_UNAVAILABLE.
int review_access(const char *answer, size_t len, const char *user, const struct right *right, const char *ns,
                  const char *name, struct err *err);
