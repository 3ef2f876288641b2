// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/jwt.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/identity/base64.h"
#include "tests/unit/operator/identity/issuer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/hmac.h>
#include <string.h>

#define NOW_S INT64_C(1800000000) // 2027-01-15 08:00:00 UTC
#define CADRE "[\"cadre\"]"

static const char *const algs[] = {"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"};
enum { RS256, RS384, RS512, ES256, ES384, ES512, KEYS };

static struct issuer_key keys[KEYS];
static struct jwks *jwks;

static int make_keys(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    for (int i = 0; i < KEYS; i++)
        keys[i] = issuer_key_new(algs[i], algs[i]);
    const char *text = issuer_jwks(keys, KEYS, &a);
    int r = jwks_parse(text, strlen(text), &jwks, &err);
    arena_done(&a);
    return r;
}

static int free_keys(void **state)
{
    (void)state;
    for (int i = 0; i < KEYS; i++)
        EVP_PKEY_free(keys[i].key);
    jwks_free(jwks);
    return 0;
}

static int verify(const char *token, struct arena *a, struct pod_claims *ret, struct err *err)
{
    const struct jwt_rules rules = {.audience = "cadre", .now_ms = NOW_S * 1000};
    *err = ERR_INIT;
    return jwt_verify(jwks, token, &rules, a, ret, err);
}

static void refused(const char *token, int code, const char *why, struct arena *a)
{
    struct pod_claims claims;
    struct err err;
    const char *want = arena_printf(a, "the token is refused: %s", why);
    assert_int_equal(verify(token, a, &claims, &err), code);
    assert_string_equal(err.msg, want);
}

static void accepted(const char *token, struct arena *a)
{
    struct pod_claims claims;
    struct err err;
    if (verify(token, a, &claims, &err) < 0)
        fail_msg("%s", err.msg);
}

// Returns a payload with a good lifetime, and the members of the case.
static const char *signed_payload(const char *payload, struct arena *a)
{
    return issuer_sign(&keys[ES256], "{\"alg\":\"ES256\",\"kid\":\"ES256\"}", payload, a);
}
#define POD "\"kubernetes.io\":{\"namespace\":\"ml\",\"pod\":{\"name\":\"p\",\"uid\":\"u\"}}"
#define LIFE "\"exp\":1800000060"

static void a_pod_is_known_by_its_token(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    for (int i = 0; i < KEYS; i++) {
        struct pod_claims c;
        struct err err;
        if (verify(issuer_token(&keys[i], CADRE, NOW_S + 3600, &a), &a, &c, &err) < 0)
            fail_msg("%s: %s", algs[i], err.msg);
        assert_string_equal(c.ns, "ml");
        assert_string_equal(c.pod, "llama-0-1");
        assert_string_equal(c.pod_uid, "pod-uid");
        assert_int_equal(c.expires_ms, (NOW_S + 3600) * 1000);
    }
    arena_done(&a);
}

static void the_audience_must_be_ours(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    static const char why[] = "it is not for the audience \"cadre\"";
    accepted(issuer_token(&keys[RS256], "\"cadre\"", NOW_S + 60, &a), &a);
    accepted(issuer_token(&keys[RS256], "[\"vault\",\"cadre\"]", NOW_S + 60, &a), &a);
    const char *others[] = {"\"vault\"",
                            "[]",
                            "[\"https://kubernetes.default.svc\"]",
                            "\"cadre2\"",
                            "\"Cadre\"",
                            "null",
                            "1",
                            "{\"cadre\":\"cadre\"}",
                            "[[\"cadre\"]]"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        refused(issuer_token(&keys[RS256], others[i], NOW_S + 60, &a), ERR_UNAUTHORIZED, why, &a);
    refused(signed_payload("{" LIFE "," POD "}", &a), ERR_UNAUTHORIZED, why, &a);
    arena_done(&a);
}

static void a_token_lives_from_its_first_to_its_last_second(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    accepted(issuer_token(&keys[ES256], CADRE, NOW_S + 1, &a), &a);
    refused(issuer_token(&keys[ES256], CADRE, NOW_S, &a), ERR_UNAUTHORIZED, "it expired at 2027-01-15T08:00:00Z", &a);
    refused(issuer_token(&keys[ES256], CADRE, NOW_S - 30, &a), ERR_UNAUTHORIZED, "it expired at 2027-01-15T07:59:30Z",
            &a);
    // Clocks may differ by a minute.
    accepted(signed_payload("{\"aud\":\"cadre\",\"nbf\":1800000060,\"exp\":1800000090," POD "}", &a), &a);
    refused(signed_payload("{\"aud\":\"cadre\",\"nbf\":1800000061,\"exp\":1800000090," POD "}", &a), ERR_UNAUTHORIZED,
            "it is not valid before 2027-01-15T08:01:01Z: is a clock wrong?", &a);
    arena_done(&a);
}

static void a_token_without_a_sensible_end_is_refused(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *ends[] = {"",
                          "\"exp\":null,",
                          "\"exp\":\"1800000060\",",
                          "\"exp\":0,",
                          "\"exp\":-1,",
                          "\"exp\":9223372036854775807,",
                          "\"exp\":99999999999999999999,",
                          "\"exp\":1.8e9,",
                          "\"exp\":true,"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        refused(signed_payload(arena_printf(&a, "{\"aud\":\"cadre\",%s" POD "}", ends[i]), &a), ERR_UNAUTHORIZED,
                "it does not say when it expires", &a);
    refused(signed_payload("{\"aud\":\"cadre\"," LIFE ",\"nbf\":\"soon\"," POD "}", &a), ERR_UNAUTHORIZED,
            "its \"nbf\" is not a time", &a);
    arena_done(&a);
}

static void a_token_must_be_bound_to_a_pod(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *pods[] = {
        "",
        ",\"kubernetes.io\":null",
        ",\"kubernetes.io\":\"ml\"",
        ",\"kubernetes.io\":{\"namespace\":\"ml\",\"serviceaccount\":{\"name\":\"default\",\"uid\":\"u\"}}",
        ",\"kubernetes.io\":{\"namespace\":\"ml\",\"pod\":{\"name\":\"p\"}}",
        ",\"kubernetes.io\":{\"namespace\":\"ml\",\"pod\":{\"name\":\"p\",\"uid\":\"\"}}",
        ",\"kubernetes.io\":{\"namespace\":\"ml\",\"pod\":{\"name\":1,\"uid\":\"u\"}}",
        ",\"kubernetes.io\":{\"namespace\":\"ml\",\"pod\":\"p\"}",
        ",\"kubernetes.io\":{\"pod\":{\"name\":\"p\",\"uid\":\"u\"}}",
        ",\"pod\":{\"name\":\"p\",\"uid\":\"u\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        refused(signed_payload(arena_printf(&a, "{\"aud\":\"cadre\"," LIFE "%s}", pods[i]), &a), ERR_UNAUTHORIZED,
                "it is not bound to a pod: agents show the token that the kubelet projects into theirs", &a);
    arena_done(&a);
}

static void the_issuer_is_compared_where_it_is_known(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct pod_claims c;
    struct err err = ERR_INIT;
    struct jwt_rules rules = {"cadre", "https://kubernetes.default.svc", NOW_S * 1000};
    const char *token = issuer_token(&keys[ES256], CADRE, NOW_S + 60, &a);
    assert_int_equal(jwt_verify(jwks, token, &rules, &a, &c, &err), 0);
    rules.issuer = "https://elsewhere";
    assert_int_equal(jwt_verify(jwks, token, &rules, &a, &c, &err), ERR_UNAUTHORIZED);
    assert_string_equal(err.msg, "the token is refused: it was not issued by \"https://elsewhere\"");
    assert_int_equal(jwt_verify(jwks, signed_payload("{\"aud\":\"cadre\"," LIFE "," POD "}", &a), &rules, &a, &c, &err),
                     ERR_UNAUTHORIZED);
    arena_done(&a);
}

// The same header and payload, with a signature of another key.
static const char *with_header(const char *header, const char *token, struct arena *a)
{
    return arena_printf(a, "%s%s", base64_encode(BASE64_URL, header, strlen(header), a), strchr(token, '.'));
}

static const char *with_payload(const char *token, const char *payload, struct arena *a)
{
    const char *dot = strchr(token, '.');
    return arena_printf(a, "%.*s.%s%s", (int)(dot - token), token,
                        base64_encode(BASE64_URL, payload, strlen(payload), a), strchr(dot + 1, '.'));
}

static void forged_tokens_are_refused(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    static const char wrong[] = "its signature is wrong";
    for (int i = 0; i < KEYS; i++) {
        const char *good = issuer_token(&keys[i], CADRE, NOW_S + 60, &a);
        refused(with_payload(good, "{\"aud\":\"cadre\"," LIFE "," POD "}", &a), ERR_UNAUTHORIZED, wrong, &a);
        refused(with_header(arena_printf(&a, "{\"alg\":\"%s\",\"kid\":\"%s\",\"x\":1}", algs[i], algs[i]), good, &a),
                ERR_UNAUTHORIZED, wrong, &a);
        // without a signature, and with half of one
        const char *end = strrchr(good, '.') + 1;
        refused(arena_strndup(&a, good, (size_t)(end - good)), ERR_UNAUTHORIZED, wrong, &a);
        size_t half = (size_t)(end - good) + strlen(end) / 8 * 4;
        refused(arena_strndup(&a, good, half), ERR_UNAUTHORIZED, wrong, &a);
        refused(arena_printf(&a, "%sAAAA", arena_strndup(&a, good, half)), ERR_UNAUTHORIZED, wrong, &a);
    }
    // a signature of zeros satisfies no curve
    const char *good = issuer_token(&keys[ES256], CADRE, NOW_S + 60, &a);
    const uint8_t zeros[64] = {0};
    size_t keep = (size_t)(strrchr(good, '.') + 1 - good);
    refused(arena_printf(&a, "%.*s%s", (int)keep, good, base64_encode(BASE64_URL, zeros, sizeof zeros, &a)),
            ERR_UNAUTHORIZED, wrong, &a);
    arena_done(&a);
}

static void the_key_decides_about_the_algorithm(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *rs = issuer_token(&keys[RS256], CADRE, NOW_S + 60, &a);
    refused(with_header("{\"alg\":\"ES256\",\"kid\":\"RS256\"}", rs, &a), ERR_UNAUTHORIZED,
            "signed with ES256, which is not what the key \"RS256\" is for", &a);
    refused(with_header("{\"alg\":\"ES384\",\"kid\":\"ES256\"}", rs, &a), ERR_UNAUTHORIZED,
            "signed with ES384, which is not what the key \"ES256\" is for", &a);
    refused(with_header("{\"alg\":\"RS512\",\"kid\":\"RS256\"}", rs, &a), ERR_UNAUTHORIZED, "its signature is wrong",
            &a);
    // signed by another key of the set than it names
    struct issuer_key liar = {"RS384", "RS256", keys[RS256].key};
    refused(issuer_token(&liar, CADRE, NOW_S + 60, &a), ERR_UNAUTHORIZED, "its signature is wrong", &a);
    const char *none[] = {"none", "None", "", "HS256", "HS512", "PS256", "EdDSA", "rs256", "RS256 "};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        refused(with_header(arena_printf(&a, "{\"alg\":\"%s\",\"kid\":\"RS256\"}", none[i]), rs, &a), ERR_UNAUTHORIZED,
                arena_printf(&a, "signed with \"%s\", which is not accepted", none[i]), &a);
    refused(with_header("{\"kid\":\"RS256\"}", rs, &a), ERR_UNAUTHORIZED, "signed with \"\", which is not accepted",
            &a);
    refused(with_header("{\"alg\":[\"RS256\"],\"kid\":\"RS256\"}", rs, &a), ERR_UNAUTHORIZED,
            "signed with \"\", which is not accepted", &a);
    arena_done(&a);
}

// A well-known attack: an HMAC with the public key as its secret, which everybody has.
static void a_public_key_is_no_shared_secret(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *jwk = issuer_jwk(&keys[RS256], &a);
    const char *token =
        with_header("{\"alg\":\"HS256\",\"kid\":\"RS256\"}", issuer_token(&keys[RS256], CADRE, NOW_S + 60, &a), &a);
    size_t n = (size_t)(strrchr(token, '.') - token);
    unsigned char mac[32];
    HMAC(EVP_sha256(), jwk, (int)strlen(jwk), (const unsigned char *)token, n, mac, NULL);
    refused(arena_printf(&a, "%.*s.%s", (int)n, token, base64_encode(BASE64_URL, mac, sizeof mac, &a)),
            ERR_UNAUTHORIZED, "signed with \"HS256\", which is not accepted", &a);
    arena_done(&a);
}

static void an_unknown_key_is_told_apart(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct issuer_key stranger = {"new", "ES256", keys[ES256].key};
    refused(issuer_token(&stranger, CADRE, NOW_S + 60, &a), ERR_NOT_FOUND,
            "it is signed by a key \"new\" that this cluster does not have", &a);
    // A token that would be refused anyway is not a reason to ask for a new key.
    refused(issuer_token(&stranger, "\"vault\"", NOW_S + 60, &a), ERR_UNAUTHORIZED,
            "it is not for the audience \"cadre\"", &a);
    refused(issuer_token(&stranger, CADRE, NOW_S - 60, &a), ERR_UNAUTHORIZED, "it expired at 2027-01-15T07:59:00Z", &a);
    const char *good = issuer_token(&keys[ES256], CADRE, NOW_S + 60, &a);
    refused(with_header("{\"alg\":\"ES256\"}", good, &a), ERR_UNAUTHORIZED, "it does not name its key", &a);
    refused(with_header("{\"alg\":\"ES256\",\"kid\":1}", good, &a), ERR_UNAUTHORIZED, "it does not name its key", &a);
    refused(with_header("{\"alg\":\"ES256\",\"kid\":\"ES256\",\"crit\":[\"b64\"]}", good, &a), ERR_UNAUTHORIZED,
            "it asks for extensions that are not known here", &a);
    arena_done(&a);
}

static void what_is_no_jwt_is_refused(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    static const char why[] = "it is not a JWT of at most 16384 bytes";
    const char *good = issuer_token(&keys[ES256], CADRE, NOW_S + 60, &a);
    for (size_t n = 0; n < (size_t)(strrchr(good, '.') - good); n++)
        refused(arena_strndup(&a, good, n), ERR_UNAUTHORIZED, why, &a);
    const char *cases[] = {"..",
                           "...",
                           "a.b.c",
                           "e30.e30",
                           "e30..e30",
                           ".e30.e30",
                           arena_printf(&a, "%s.e30", good),
                           arena_printf(&a, "%s\n", good),
                           arena_printf(&a, "%s=", good),
                           arena_printf(&a, " %s", good),
                           "bnVsbA.bnVsbA.AAAA" /* null */,
                           "W10.W10.AAAA" /* [] */};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refused(cases[i], ERR_UNAUTHORIZED, why, &a);
    char *huge = arena_alloc(&a, 1024 * 1024);
    memset(huge, 'A', 1024 * 1024 - 1);
    refused(huge, ERR_UNAUTHORIZED, why, &a);
    memcpy(huge, good, strlen(good));
    refused(huge, ERR_UNAUTHORIZED, why, &a);
    arena_done(&a);
}

static void told(const char *token, int code, const char *why)
{
    const struct jwt_rules rules = {.audience = "cadre", .now_ms = NOW_S * 1000};
    struct err err = ERR_INIT;
    assert_int_equal(jwt_check(jwks, token, &rules, &err), code);
    if (why && !strstr(err.msg, why))
        fail_msg("%s", err.msg);
}

// A client's token need not be the token of a pod, or a JWT.
static void what_can_be_told_without_asking(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct issuer_key other = issuer_key_new("ES256", "ES256"), stranger = issuer_key_new("theirs", "ES256");
    told(issuer_token(&keys[RS256], CADRE, NOW_S + 60, &a), 0, NULL);
    told(signed_payload("{\"aud\":\"cadre\"," LIFE "}", &a), 0, NULL);
    told(issuer_token(&keys[RS256], "\"vault\"", NOW_S + 60, &a), ERR_UNAUTHORIZED, "not for the audience \"cadre\"");
    told(issuer_token(&keys[RS256], CADRE, NOW_S, &a), ERR_UNAUTHORIZED, "it expired at 2027-01-15T08:00:00Z");
    told(issuer_token(&other, CADRE, NOW_S + 60, &a), ERR_UNAUTHORIZED, "its signature is wrong");
    told(issuer_token(&stranger, CADRE, NOW_S + 60, &a), ERR_NOT_FOUND, NULL);
    told(issuer_token(&stranger, CADRE, NOW_S - 1, &a), ERR_UNAUTHORIZED, "it expired at"); // from any issuer
    told(issuer_sign(&stranger, "{\"alg\":\"ES256\"}", "{\"aud\":\"cadre\"," LIFE "}", &a), ERR_NOT_FOUND, NULL);
    told("s3cret", ERR_NOT_FOUND, NULL);
    told("a.b.c", ERR_NOT_FOUND, NULL);
    told("", ERR_NOT_FOUND, NULL);
    EVP_PKEY_free(other.key);
    EVP_PKEY_free(stranger.key);
    arena_done(&a);
}

static void the_end_of_a_token_can_be_read_without_its_key(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct issuer_key stranger = {"other cluster", "ES256", keys[ES256].key};
    assert_int_equal(jwt_expires_ms(issuer_token(&stranger, "\"x\"", NOW_S, &a)), NOW_S * 1000);
    assert_int_equal(jwt_expires_ms("opaque-token"), 0);
    assert_int_equal(jwt_expires_ms(signed_payload("{}", &a)), 0);
    assert_int_equal(jwt_expires_ms(signed_payload("{\"exp\":\"never\"}", &a)), 0);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_is_known_by_its_token),
        cmocka_unit_test(the_audience_must_be_ours),
        cmocka_unit_test(a_token_lives_from_its_first_to_its_last_second),
        cmocka_unit_test(a_token_without_a_sensible_end_is_refused),
        cmocka_unit_test(a_token_must_be_bound_to_a_pod),
        cmocka_unit_test(the_issuer_is_compared_where_it_is_known),
        cmocka_unit_test(forged_tokens_are_refused),
        cmocka_unit_test(the_key_decides_about_the_algorithm),
        cmocka_unit_test(a_public_key_is_no_shared_secret),
        cmocka_unit_test(an_unknown_key_is_told_apart),
        cmocka_unit_test(what_is_no_jwt_is_refused),
        cmocka_unit_test(what_can_be_told_without_asking),
        cmocka_unit_test(the_end_of_a_token_can_be_read_without_its_key),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
