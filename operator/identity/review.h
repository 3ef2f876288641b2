// SPDX-License-Identifier: Apache-2.0
// Writes the questions to the API server about a token, and reads the answers: TokenReview (who is the owner?), then
// SubjectAccessReview (what may the owner do?). Pure.
#pragma once

#include "operator/api/object.h"
#include "operator/gateway/authority.h"

#include <stdbool.h>
#include <stddef.h>

// Something that a user may or may not do with objects of a namespace, for the API server and for messages.
struct right {
    enum kind kind;
    const char *verb, *subresource; // "create", "call"; NULL = the object itself
    const char *what;               // "call workers": user x may not ... in namespace y
    const char *advice;             // "bind ..."
};

const char *review_token(const char *token, const char *audience, struct arena *a); // the TokenReview to create

// Reads the answer to it: the user, in the arena. ERR_UNAUTHORIZED: the token is not valid. ERR_UNAVAILABLE: the answer
// makes no sense.
int review_user(const char *answer, size_t len, const char *audience, struct arena *a, struct client_user *ret,
                struct err *err);

// Returns the SubjectAccessReview to create. `name` is the name of the object, NULL = any.
const char *review_of(const struct client_user *who, const struct right *right, const char *ns, const char *name,
                      struct arena *a);
// Reads the answer to it: 0, ERR_FORBIDDEN or ERR_UNAVAILABLE.
int review_access(const char *answer, size_t len, const char *user, const struct right *right, const char *ns,
                  const char *name, struct err *err);
