// SPDX-License-Identifier: Apache-2.0
// A pod's ServiceAccount token (compact JWS, RFC 7515 and 7519), checked locally. Pure.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/identity/jwks.h"

enum { JWT_LEN_MAX = 16 * 1024 };

struct jwt_rules {
    const char *audience; // the token must have it among its audiences
    const char *issuer;   // the token must have this one; NULL = any issuer with these keys
    int64_t now_ms;       // Unix time. A token may begin up to a minute later, but must not have ended
};

// The claims are in the arena. ERR_UNAUTHORIZED says what is wrong with the token. ERR_NOT_FOUND: the token seems good,
// but is signed by a key that is not in the set.
int jwt_verify(const struct jwks *keys, const char *token, const struct jwt_rules *rules, struct arena *a,
               struct pod_claims *ret, struct err *err);

// Checks a client's token before the API server is asked about it. 0: the token is signed with one of these keys, for
// the audience, and valid now. ERR_UNAUTHORIZED: the API server would refuse it. ERR_NOT_FOUND: only the API server can
// tell, because the token is not a JWT or comes from another issuer.
int jwt_check(const struct jwks *keys, const char *token, const struct jwt_rules *rules, struct err *err);

// Returns when a token ends according to its own claim, which is not verified. Unix time; 0 = it has no end, or is not
// a JWT.
int64_t jwt_expires_ms(const char *token);
