// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/jwks.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/identity/base64.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdlib.h>
#include <string.h>

enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192, RSA_EXPONENT_MAX = 8, COORDINATE_MAX = 66 };

static const struct curve {
    const char *name;  // its name in a JWK
    const char *group; // its name in OpenSSL
    size_t size;       // bytes of a coordinate, and of each half of a signature
} curves[] = {{"P-256", "P-256", 32}, {"P-384", "P-384", 48}, {"P-521", "P-521", 66}};

static const struct algorithm {
    const char *name, *digest;
    const struct curve *curve; // NULL: RSA
} algorithms[] = {
    {"RS256", "SHA256", NULL},       {"RS384", "SHA384", NULL},       {"RS512", "SHA512", NULL},
    {"ES256", "SHA256", &curves[0]}, {"ES384", "SHA384", &curves[1]}, {"ES512", "SHA512", &curves[2]},
};

struct jwk {
    const char *kid;
    const char *alg;           // the only algorithm of the key, NULL = any of its type
    const struct curve *curve; // NULL: RSA
    EVP_PKEY *key;
};

struct jwks {
    struct arena arena;
    struct jwk keys[JWKS_KEYS_MAX];
    size_t n;
};

static uint8_t *member_bytes(const struct json *v, const char *name, struct arena *a, size_t *ret_len)
{
    const struct json *m = json_get(v, name);
    const char *text = m ? json_str(m, a) : NULL;
    return text ? base64_decode(BASE64_URL, text, strlen(text), a, ret_len) : NULL;
}

static EVP_PKEY *key_of(const char *type, OSSL_PARAM_BLD *b)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(b);
    if (!ctx || !params || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(ctx);
    return key;
}

static EVP_PKEY *rsa_key(const struct json *v, struct arena *a)
{
    size_t n_len = 0, e_len = 0;
    const uint8_t *n = member_bytes(v, "n", a, &n_len), *e = member_bytes(v, "e", a, &e_len);
    if (!n || !e || n_len > RSA_BITS_MAX / 8 || e_len == 0 || e_len > RSA_EXPONENT_MAX || e[e_len - 1] % 2 == 0)
        return NULL;
    EVP_PKEY *key = NULL;
    BIGNUM *modulus = BN_bin2bn(n, (int)n_len, NULL), *exponent = BN_bin2bn(e, (int)e_len, NULL);
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    if (modulus && exponent && b && BN_num_bits(modulus) >= RSA_BITS_MIN && !BN_is_one(exponent) &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_N, modulus) &&
        OSSL_PARAM_BLD_push_BN(b, OSSL_PKEY_PARAM_RSA_E, exponent))
        key = key_of("RSA", b);
    OSSL_PARAM_BLD_free(b);
    BN_free(modulus);
    BN_free(exponent);
    return key;
}

static EVP_PKEY *ec_key(const struct json *v, struct arena *a, const struct curve **ret_curve)
{
    const struct json *name = json_get(v, "crv");
    size_t x_len = 0, y_len = 0;
    const uint8_t *x = member_bytes(v, "x", a, &x_len), *y = member_bytes(v, "y", a, &y_len);
    const struct curve *curve = NULL;
    for (size_t i = 0; i < ARRAY_LEN(curves); i++)
        if (json_str_is(name, curves[i].name))
            curve = &curves[i];
    if (!curve || !x || !y || x_len != curve->size || y_len != curve->size)
        return NULL;
    uint8_t point[1 + 2 * COORDINATE_MAX] = {POINT_CONVERSION_UNCOMPRESSED};
    memcpy(point + 1, x, x_len);
    memcpy(point + 1 + x_len, y, y_len);
    EVP_PKEY *key = NULL;
    OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
    if (b && OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, curve->group, 0) &&
        OSSL_PARAM_BLD_push_octet_string(b, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + x_len + y_len))
        key = key_of("EC", b); // refuses a point that is not on the curve
    OSSL_PARAM_BLD_free(b);
    *ret_curve = curve;
    return key;
}

static void jwks_add(struct jwks *j, const struct json *v, struct arena *scratch)
{
    struct jwk k = {0};
    const struct json *use = json_get(v, "use"), *type = json_get(v, "kty");
    k.kid = json_str(json_get(v, "kid"), &j->arena);
    k.alg = json_str(json_get(v, "alg"), &j->arena);
    if (str_empty(k.kid) || (use && !json_str_is(use, "sig")) || jwks_find(j, k.kid))
        return;
    if (json_str_is(type, "RSA"))
        k.key = rsa_key(v, scratch);
    else if (json_str_is(type, "EC"))
        k.key = ec_key(v, scratch, &k.curve);
    if (k.key)
        j->keys[j->n++] = k;
    ERR_clear_error();
}

int jwks_parse(const char *text, size_t len, struct jwks **ret, struct err *err)
{
    struct arena scratch = ARENA_INIT;
    struct json *root = NULL;
    if (len > JWKS_LEN_MAX)
        return err_set(err, ERR_LIMIT, "a JWKS of %zu bytes; at most %d are read", len, JWKS_LEN_MAX);
    if (json_parse(text, len, NULL, &scratch, &root, err) < 0) {
        arena_done(&scratch);
        return err_set(err, ERR_INVALID, "the JWKS cannot be read: %s", err->msg);
    }
    const struct json *keys = json_get(root, "keys");
    struct jwks *j = xcalloc(1, sizeof *j);
    if (keys && keys->type == JSON_LIST && json_count(keys) <= JWKS_KEYS_MAX)
        JSON_FOREACH(v, keys)
            jwks_add(j, v, &scratch);
    arena_done(&scratch);
    if (j->n) {
        *ret = j;
        return 0;
    }
    jwks_free(j);
    return err_set(err, ERR_INVALID,
                   "the JWKS has no key of use: at most %d keys are read, and they must have a kid and be RSA (of %d "
                   "bits or more) or EC (P-256, P-384, P-521)",
                   JWKS_KEYS_MAX, RSA_BITS_MIN);
}

size_t jwks_count(const struct jwks *j)
{
    return j->n;
}

void jwks_free(struct jwks *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->n; i++)
        EVP_PKEY_free(j->keys[i].key);
    arena_done(&j->arena);
    free(j);
}

const struct jwk *jwks_find(const struct jwks *j, const char *kid)
{
    for (size_t i = 0; i < j->n; i++)
        if (str_eq(j->keys[i].kid, kid))
            return &j->keys[i];
    return NULL;
}

// A JWS has the two numbers of an ECDSA signature side by side, but OpenSSL needs them in DER. The caller frees the
// result.
static unsigned char *der_signature(const struct curve *curve, struct bytes s, size_t *ret_len)
{
    unsigned char *der = NULL;
    int len = -1;
    if (s.len != 2 * curve->size)
        return NULL;
    const unsigned char *at = s.data;
    BIGNUM *first = BN_bin2bn(at, (int)curve->size, NULL);
    BIGNUM *second = BN_bin2bn(at + curve->size, (int)curve->size, NULL);
    ECDSA_SIG *sig = ECDSA_SIG_new();
    if (first && second && sig && ECDSA_SIG_set0(sig, first, second)) { // takes both
        first = second = NULL;
        len = i2d_ECDSA_SIG(sig, &der);
    }
    BN_free(first);
    BN_free(second);
    ECDSA_SIG_free(sig);
    *ret_len = len < 0 ? 0 : (size_t)len;
    return len < 0 ? NULL : der;
}

static bool signature_right(const struct jwk *k, const char *digest, struct bytes text, const unsigned char *sig,
                            size_t len)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool right = ctx && EVP_DigestVerifyInit_ex(ctx, NULL, digest, NULL, NULL, k->key, NULL) == 1 &&
                 EVP_DigestVerify(ctx, sig, len, text.data, text.len) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return right;
}

int jwk_verify(const struct jwk *k, const char *alg, struct bytes text, struct bytes signature, struct err *err)
{
    const struct algorithm *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
        if (str_eq(algorithms[i].name, alg))
            found = &algorithms[i];
    if (!found)
        return err_set(err, ERR_UNAUTHORIZED, "signed with \"%.16s\", which is not accepted", alg ? alg : "");
    // The key decides about the algorithm, never the token alone.
    if (found->curve != k->curve || (k->alg && !str_eq(k->alg, alg)))
        return err_set(err, ERR_UNAUTHORIZED, "signed with %s, which is not what the key \"%.64s\" is for", alg,
                       k->kid);
    bool right = false;
    if (found->curve) {
        size_t len;
        unsigned char *der = der_signature(found->curve, signature, &len);
        right = der && signature_right(k, found->digest, text, der, len);
        OPENSSL_free(der);
    } else {
        right = signature_right(k, found->digest, text, signature.data, signature.len);
    }
    return right ? 0 : err_set(err, ERR_UNAUTHORIZED, "its signature is wrong");
}
