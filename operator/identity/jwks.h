// SPDX-License-Identifier: Apache-2.0
// The public keys of a cluster's token issuer (RFC 7517), and signatures made with them (RFC 7518): RSA of 2,048 bits
// or more with SHA-2 (RS256, RS384, RS512), and the curves P-256, P-384 and P-521 (ES256, ES384, ES512). It accepts no
// other algorithm, neither "none" nor shared secrets. Pure.
#pragma once

#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { JWKS_LEN_MAX = 256 * 1024, JWKS_KEYS_MAX = 64 };

struct jwks;
struct jwk;

// Ignores keys of unknown types and keys for encryption, as the RFC demands. ERR_INVALID: the text is not a JWKS, or
// has no usable key. ERR_LIMIT: it is too long, or has too many keys.
int jwks_parse(const char *text, size_t len, struct jwks **ret, struct err *err);
size_t jwks_count(const struct jwks *j);                            // at least 1
void jwks_free(struct jwks *j);                                     // accepts NULL
const struct jwk *jwks_find(const struct jwks *j, const char *kid); // NULL: there is no such key

struct bytes {
    const void *data;
    size_t len;
};

// ERR_UNAUTHORIZED: the algorithm is unknown or not for this key, or the signature is wrong.
int jwk_verify(const struct jwk *k, const char *alg, struct bytes text, struct bytes signature, struct err *err);
