// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/identity/issuer.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/identity/base64.h"

#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *alg, *curve, *digest;
    int size; // bytes of a coordinate
} kinds[] = {
    {"RS256", NULL, "SHA256", 0},     {"RS384", NULL, "SHA384", 0},     {"RS512", NULL, "SHA512", 0},
    {"ES256", "P-256", "SHA256", 32}, {"ES384", "P-384", "SHA384", 48}, {"ES512", "P-521", "SHA512", 66},
};

static size_t kind_of(const char *alg)
{
    size_t i = 0;
    while (!str_eq(kinds[i].alg, alg))
        if (++i == ARRAY_LEN(kinds))
            abort();
    return i;
}

struct issuer_key issuer_key_new(const char *kid, const char *alg)
{
    const char *curve = kinds[kind_of(alg)].curve;
    return (struct issuer_key){kid, alg, curve ? EVP_EC_gen(curve) : EVP_RSA_gen(2048)};
}

static const char *number(const struct issuer_key *k, const char *param, int size, struct arena *a)
{
    BIGNUM *n = NULL;
    if (!EVP_PKEY_get_bn_param(k->key, param, &n))
        abort();
    size = size ? size : BN_num_bytes(n);
    unsigned char *bytes = arena_alloc(a, (size_t)size);
    BN_bn2binpad(n, bytes, size);
    BN_free(n);
    return base64_encode(BASE64_URL, bytes, (size_t)size, a);
}

const char *issuer_jwk(const struct issuer_key *k, struct arena *a)
{
    size_t kind = kind_of(k->alg);
    if (!kinds[kind].curve)
        return arena_printf(a, "{\"use\":\"sig\",\"kty\":\"RSA\",\"kid\":\"%s\",\"n\":\"%s\",\"e\":\"%s\"}", k->kid,
                            number(k, OSSL_PKEY_PARAM_RSA_N, 0, a), number(k, OSSL_PKEY_PARAM_RSA_E, 0, a));
    return arena_printf(a, "{\"kty\":\"EC\",\"kid\":\"%s\",\"crv\":\"%s\",\"x\":\"%s\",\"y\":\"%s\"}", k->kid,
                        kinds[kind].curve, number(k, OSSL_PKEY_PARAM_EC_PUB_X, kinds[kind].size, a),
                        number(k, OSSL_PKEY_PARAM_EC_PUB_Y, kinds[kind].size, a));
}

const char *issuer_jwks(const struct issuer_key *keys, size_t n, struct arena *a)
{
    const char *all = "";
    for (size_t i = 0; i < n; i++)
        all = arena_printf(a, "%s%s%s", all, i ? "," : "", issuer_jwk(&keys[i], a));
    return arena_printf(a, "{\"keys\":[%s]}", all);
}

static size_t raw_signature(const unsigned char *der, size_t len, int size, unsigned char *ret)
{
    const unsigned char *at = der;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &at, (long)len);
    BN_bn2binpad(ECDSA_SIG_get0_r(sig), ret, size);
    BN_bn2binpad(ECDSA_SIG_get0_s(sig), ret + size, size);
    ECDSA_SIG_free(sig);
    return 2 * (size_t)size;
}

const char *issuer_sign(const struct issuer_key *k, const char *header, const char *payload, struct arena *a)
{
    size_t kind = kind_of(k->alg);
    const char *text = arena_printf(a, "%s.%s", base64_encode(BASE64_URL, header, strlen(header), a),
                                    base64_encode(BASE64_URL, payload, strlen(payload), a));
    unsigned char made[1024], raw[256];
    size_t len = sizeof made;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (EVP_DigestSignInit_ex(ctx, NULL, kinds[kind].digest, NULL, NULL, k->key, NULL) != 1 ||
        EVP_DigestSign(ctx, made, &len, (const unsigned char *)text, strlen(text)) != 1)
        abort();
    EVP_MD_CTX_free(ctx);
    if (kinds[kind].curve)
        len = raw_signature(made, len, kinds[kind].size, raw);
    return arena_printf(a, "%s.%s", text, base64_encode(BASE64_URL, kinds[kind].curve ? raw : made, len, a));
}

const char *issuer_token(const struct issuer_key *k, const char *audience, int64_t expires_s, struct arena *a)
{
    const char *header = arena_printf(a, "{\"alg\":\"%s\",\"kid\":\"%s\"}", k->alg, k->kid);
    const char *payload = arena_printf(
        a,
        "{\"aud\":%s,\"exp\":%" PRId64 ",\"iat\":1700000000,\"iss\":\"https://kubernetes.default.svc\","
        "\"jti\":\"b1\",\"kubernetes.io\":{\"namespace\":\"ml\",\"node\":{\"name\":\"n1\",\"uid\":\"node-uid\"},"
        "\"pod\":{\"name\":\"llama-0-1\",\"uid\":\"pod-uid\"},\"serviceaccount\":{\"name\":\"default\",\"uid\":\"s\"}},"
        "\"nbf\":1700000000,\"sub\":\"system:serviceaccount:ml:default\"}",
        audience, expires_s);
    return issuer_sign(k, header, payload, a);
}
