// SPDX-License-Identifier: Apache-2.0
// What is asked of the API server about a token, and what its answers mean: TokenReview (who is it?), then
// SubjectAccessReview (may it?). Pure.
#ifndef CADRE_IDENTITY_REVIEW_H
#define CADRE_IDENTITY_REVIEW_H

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>

const char *review_token(const char *token, const char *audience, struct arena *a); // the TokenReview to create

// The answer to it: *ret_user, and the SubjectAccessReview to create: may that user, in all its groups, create
// workergroups/call in the namespace? ERR_UNAUTHORIZED; ERR_UNAVAILABLE: the answer makes no sense.
int review_user(const char *answer, size_t len, const char *audience, const char *ns, struct arena *a,
                const char **ret_user, const char **ret_access, struct err *err);

// The answer to that: 0, ERR_FORBIDDEN or ERR_UNAVAILABLE.
int review_access(const char *answer, size_t len, const char *user, const char *ns, struct err *err);

#endif
