// SPDX-License-Identifier: Apache-2.0
// A token issuer: keys, their JWKS, and tokens signed with them. The test decides if a token is right or wrong.
#pragma once

#include "common/base/arena.h"

#include <openssl/evp.h>

struct issuer_key {
    const char *kid, *alg; // "RS256", "ES384", ...
    EVP_PKEY *key;
};

struct issuer_key issuer_key_new(const char *kid, const char *alg); // the caller owns the key
// Returns a member of a JWKS, without an "alg".
const char *issuer_jwk(const struct issuer_key *k, struct arena *a);
const char *issuer_jwks(const struct issuer_key *keys, size_t n, struct arena *a);

// Header and payload are JSON. Signs with the key and its algorithm, and ignores the "alg" of the header.
const char *issuer_sign(const struct issuer_key *k, const char *header, const char *payload, struct arena *a);
// Makes a token as Kubernetes does, bound to pod ml/llama-0-1 with UID pod-uid. audience: JSON.
const char *issuer_token(const struct issuer_key *k, const char *audience, int64_t expires_s, struct arena *a);
