// SPDX-License-Identifier: Apache-2.0
// A pod's ServiceAccount token (compact JWS, RFC 7515 and 7519), checked locally. Pure.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/identity/jwks.h"

enum { JWT_LEN_MAX = 16 * 1024 };

struct jwt_rules {
    const char *audience; // must be one of the token's
    const char *issuer;   // must be the token's; NULL = any that has the keys
    int64_t now_ms;       // Unix time. A token may be from up to a minute after it, but has no minute beyond its end
};

// The claims are in the arena. ERR_UNAUTHORIZED says what is wrong with the token; ERR_NOT_FOUND: all is well as far as
// can be told, but it is signed by a key that is not in the set.
int jwt_verify(const struct jwks *keys, const char *token, const struct jwt_rules *rules, struct arena *a,
               struct pod_claims *ret, struct err *err);

// Whether a client's token, which the API server will be asked about, can be told to be of no use without asking.
// 0: signed with one of these keys, for the audience, and in its time. ERR_UNAUTHORIZED: the API server would refuse
// it. ERR_NOT_FOUND: it cannot be told here: no JWT, or of another issuer.
int jwt_check(const struct jwks *keys, const char *token, const struct jwt_rules *rules, struct err *err);

// When a token ends, as it says itself (nothing is verified): Unix time; 0 = it does not say, or is not a JWT.
int64_t jwt_expires_ms(const char *token);
