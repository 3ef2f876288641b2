// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/jwt.h"

#include "common/base/json.h"
#include "common/base/rfc3339.h"
#include "common/base/str.h"
#include "operator/identity/base64.h"

#include <string.h>

enum { LEEWAY_MS = 60 * 1000 };
#define SECONDS_MAX INT64_C(253402300799) // the end of the year 9999

struct jwt {
    struct bytes signed_text, signature;
    struct json *header, *claims;
};

static struct json *part_json(const char *text, size_t len, struct arena *a)
{
    struct json *root = NULL;
    struct err err = ERR_INIT;
    size_t n;
    const uint8_t *bytes = base64_decode(BASE64_URL, text, len, a, &n);
    if (!bytes || json_parse((const char *)bytes, n, NULL, a, &root, &err) < 0 || root->type != JSON_OBJECT)
        return NULL;
    return root;
}

// Splits a token into its three parts.
static bool jwt_split(const char *token, struct arena *a, struct jwt *ret)
{
    if (strnlen(token, JWT_LEN_MAX + 1) > JWT_LEN_MAX)
        return false;
    const char *dot = strchr(token, '.'), *second = dot ? strchr(dot + 1, '.') : NULL;
    if (!second)
        return false;
    *ret = (struct jwt){.signed_text = {token, (size_t)(second - token)}};
    ret->signature.data =
        base64_decode(BASE64_URL, second + 1, strlen(second + 1), a, &ret->signature.len); // a third dot is not base64
    ret->header = part_json(token, (size_t)(dot - token), a);
    ret->claims = part_json(dot + 1, (size_t)(second - dot - 1), a);
    return ret->signature.data && ret->header && ret->claims;
}

// Reads a time in milliseconds of Unix time. Returns false if it is there, but is not a sensible number.
static bool claim_time(const struct json *claims, const char *name, int64_t *ret)
{
    const struct json *v = json_get(claims, name);
    int64_t s = 0;
    if (v && (!json_i64(v, &s) || s <= 0 || s > SECONDS_MAX))
        return false;
    *ret = s * 1000;
    return true;
}

static int check_times(const struct json *claims, int64_t now_ms, int64_t *ret_expires_ms, struct err *err)
{
    int64_t end = 0, start = 0;
    char when[RFC3339_SIZE];
    if (!claim_time(claims, "exp", &end) || end == 0)
        return err_set(err, ERR_UNAUTHORIZED, "it does not say when it expires");
    if (!claim_time(claims, "nbf", &start))
        return err_set(err, ERR_UNAUTHORIZED, "its \"nbf\" is not a time");
    if (end <= now_ms)
        return err_set(err, ERR_UNAUTHORIZED, "it expired at %s", rfc3339_format(end, when));
    if (start > now_ms + LEEWAY_MS)
        return err_set(err, ERR_UNAUTHORIZED, "it is not valid before %s: is a clock wrong?",
                       rfc3339_format(start, when));
    *ret_expires_ms = end;
    return 0;
}

static bool has_audience(const struct json *claims, const char *audience)
{
    const struct json *v = json_get(claims, "aud");
    if (!v || v->type != JSON_LIST)
        return json_str_is(v, audience);
    JSON_FOREACH(item, v)
        if (json_str_is(item, audience))
            return true;
    return false;
}

static int check_pod(const struct json *claims, struct arena *a, struct pod_claims *ret, struct err *err)
{
    const struct json *k = json_get(claims, "kubernetes.io"), *pod = json_get(k, "pod");
    ret->ns = json_str(json_get(k, "namespace"), a);
    ret->pod = json_str(json_get(pod, "name"), a);
    ret->pod_uid = json_str(json_get(pod, "uid"), a);
    if (str_empty(ret->ns) || str_empty(ret->pod) || str_empty(ret->pod_uid))
        return err_set(err, ERR_UNAUTHORIZED,
                       "it is not bound to a pod: agents show the token that the kubelet projects into theirs");
    return 0;
}

static int check_claims(const struct json *claims, const struct jwt_rules *rules, int64_t *ret_expires_ms,
                        struct err *err)
{
    if (!has_audience(claims, rules->audience))
        return err_set(err, ERR_UNAUTHORIZED, "it is not for the audience \"%s\"", rules->audience);
    if (rules->issuer && !json_str_is(json_get(claims, "iss"), rules->issuer))
        return err_set(err, ERR_UNAUTHORIZED, "it was not issued by \"%s\"", rules->issuer);
    return check_times(claims, rules->now_ms, ret_expires_ms, err);
}

static int check_signature(const struct jwks *keys, const struct jwt *t, struct arena *a, struct err *err)
{
    const char *alg = json_str(json_get(t->header, "alg"), a), *kid = json_str(json_get(t->header, "kid"), a);
    if (json_get(t->header, "crit"))
        return err_set(err, ERR_UNAUTHORIZED, "it asks for extensions that are not known here");
    if (str_empty(kid))
        return err_set(err, ERR_UNAUTHORIZED, "it does not name its key");
    const struct jwk *k = jwks_find(keys, kid);
    if (!k)
        return err_set(err, ERR_NOT_FOUND, "it is signed by a key \"%.64s\" that this cluster does not have", kid);
    return jwk_verify(k, alg, t->signed_text, t->signature, err);
}

int jwt_verify(const struct jwks *keys, const char *token, const struct jwt_rules *rules, struct arena *a,
               struct pod_claims *ret, struct err *err)
{
    struct jwt t = {0};
    struct arena scratch = ARENA_INIT;
    int r = 0;
    if (!jwt_split(token, &scratch, &t))
        r = err_set(err, ERR_UNAUTHORIZED, "it is not a JWT of at most %d bytes", JWT_LEN_MAX);
    if (r == 0)
        r = check_signature(keys, &t, &scratch, err);
    if (r == 0 || r == ERR_NOT_FOUND) {
        int claims = check_claims(t.claims, rules, &ret->expires_ms, err);
        if (claims == 0)
            claims = check_pod(t.claims, a, ret, err);
        r = claims < 0 ? claims : r;
    }
    arena_done(&scratch);
    return r < 0 ? err_wrap(err, "the token is refused") : 0;
}

// Accepts any issuer.
static int check_over(const struct json *claims, int64_t now_ms, struct err *err)
{
    char when[RFC3339_SIZE];
    int64_t end = 0;
    if (!claim_time(claims, "exp", &end) || end == 0 || end > now_ms)
        return 0;
    return err_set(err, ERR_UNAUTHORIZED, "it expired at %s", rfc3339_format(end, when));
}

static int check_known(const struct jwks *keys, const struct jwt *t, const struct jwt_rules *rules, struct arena *a,
                       struct err *err)
{
    int64_t expires_ms;
    int r = check_over(t->claims, rules->now_ms, err);
    if (r == 0 && !json_get(t->header, "kid"))
        r = err_set(err, ERR_NOT_FOUND, "it does not name its key");
    if (r == 0)
        r = check_signature(keys, t, a, err);
    return r < 0 ? r : check_claims(t->claims, rules, &expires_ms, err);
}

int jwt_check(const struct jwks *keys, const char *token, const struct jwt_rules *rules, struct err *err)
{
    struct jwt t = {0};
    struct arena scratch = ARENA_INIT;
    int r = jwt_split(token, &scratch, &t) ? check_known(keys, &t, rules, &scratch, err)
                                           : err_set(err, ERR_NOT_FOUND, "it is not a JWT");
    arena_done(&scratch);
    return r < 0 ? err_wrap(err, "the token is refused") : 0;
}

int64_t jwt_expires_ms(const char *token)
{
    struct jwt t = {0};
    struct arena scratch = ARENA_INIT;
    int64_t end = 0;
    if (!jwt_split(token, &scratch, &t) || !claim_time(t.claims, "exp", &end))
        end = 0;
    arena_done(&scratch);
    return end;
}
