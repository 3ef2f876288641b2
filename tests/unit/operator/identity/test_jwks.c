// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/jwks.h"

#include "common/base/mem.h"
#include "tests/unit/operator/identity/issuer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct issuer_key rsa, p256;

static int make_keys(void **state)
{
    (void)state;
    rsa = issuer_key_new("rsa", "RS256");
    p256 = issuer_key_new("p256", "ES256");
    return 0;
}

static int free_keys(void **state)
{
    (void)state;
    EVP_PKEY_free(rsa.key);
    EVP_PKEY_free(p256.key);
    return 0;
}

static int parse(const char *text, struct jwks **ret, struct err *err)
{
    *ret = NULL;
    *err = ERR_INIT;
    return jwks_parse(text, strlen(text), ret, err);
}

static void keys_are_found_by_their_name(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct issuer_key both[] = {rsa, p256};
    struct jwks *j;
    struct err err;
    assert_int_equal(parse(issuer_jwks(both, 2, &a), &j, &err), 0);
    assert_non_null(jwks_find(j, "rsa"));
    assert_non_null(jwks_find(j, "p256"));
    assert_ptr_not_equal(jwks_find(j, "rsa"), jwks_find(j, "p256"));
    assert_null(jwks_find(j, "other"));
    assert_null(jwks_find(j, ""));
    assert_null(jwks_find(j, NULL));
    jwks_free(j);
    arena_done(&a);
}

// Each of them is read alone, and beside a good key, which it does not spoil.
static void keys_that_are_of_no_use_are_left_out(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *good = issuer_jwk(&p256, &a), *rsa_text = issuer_jwk(&rsa, &a);
    const char *bad[] = {
        "null",
        "1",
        "\"x\"",
        "{}",
        "[]",
        "{\"kty\":\"oct\",\"kid\":\"o\",\"k\":\"c2VjcmV0\"}",
        "{\"kty\":\"OKP\",\"kid\":\"o\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
        "{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"secp256k1\",\"x\":\"AA\",\"y\":\"AA\"}",
        "{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}",
        // a point that is not on the curve
        "{\"kty\":\"EC\",\"kid\":\"k\",\"crv\":\"P-256\",\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}",
        "{\"kty\":\"RSA\",\"kid\":\"k\",\"n\":\"AQAB\",\"e\":\"AQAB\"}", // 17 bits
        "{\"kty\":\"RSA\",\"kid\":\"k\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"kid\":\"k\",\"n\":\"!!\",\"e\":\"AQAB\"}",
        // the good key with no name, for encryption, with an even exponent, with exponent 1
        arena_printf(&a, "{\"kid\":\"\",%s", rsa_text + 1),
        arena_printf(&a, "{\"use\":\"enc\",%s", rsa_text + 1),
        arena_printf(&a, "{\"e\":\"AA\",%s", rsa_text + 1),
        arena_printf(&a, "{\"e\":\"AQ\",%s", rsa_text + 1),
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct jwks *j;
        struct err err;
        if (parse(arena_printf(&a, "{\"keys\":[%s]}", bad[i]), &j, &err) != ERR_INVALID)
            fail_msg("kept: %s", bad[i]);
        assert_int_equal(parse(arena_printf(&a, "{\"keys\":[%s,%s]}", good, bad[i]), &j, &err), 0);
        assert_non_null(jwks_find(j, "p256"));
        jwks_free(j);
    }
    arena_done(&a);
}

static void the_first_key_of_a_name_is_taken(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct issuer_key twin = {"p256", "RS256", rsa.key};
    const struct issuer_key both[] = {p256, twin};
    struct bytes nothing = {"", 0};
    struct jwks *j;
    struct err err;
    assert_int_equal(parse(issuer_jwks(both, 2, &a), &j, &err), 0);
    assert_int_equal(jwk_verify(jwks_find(j, "p256"), "RS256", nothing, nothing, &err), ERR_UNAUTHORIZED);
    assert_string_equal(err.msg, "signed with RS256, which is not what the key \"p256\" is for");
    jwks_free(j);
    arena_done(&a);
}

static void what_is_no_jwks_is_refused(void **state)
{
    (void)state;
    const char *cases[] = {"", "x", "null", "[]", "{}", "{\"keys\":null}", "{\"keys\":{}}", "{\"keys\":[]}"};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jwks *j;
        struct err err;
        assert_int_equal(parse(cases[i], &j, &err), ERR_INVALID);
        assert_null(j);
        assert_true(strlen(err.msg) > 0);
    }
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct jwks *j;
    struct err err;
    char *long_text = arena_alloc(&a, JWKS_LEN_MAX + 2);
    memset(long_text, ' ', JWKS_LEN_MAX + 1);
    assert_int_equal(parse(long_text, &j, &err), ERR_LIMIT);

    struct issuer_key many[JWKS_KEYS_MAX + 1];
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = (struct issuer_key){arena_printf(&a, "k%zu", i), "ES256", p256.key};
    assert_int_equal(parse(issuer_jwks(many, JWKS_KEYS_MAX, &a), &j, &err), 0);
    for (size_t i = 0; i < JWKS_KEYS_MAX; i++)
        assert_non_null(jwks_find(j, many[i].kid));
    jwks_free(j);
    assert_int_equal(parse(issuer_jwks(many, ARRAY_LEN(many), &a), &j, &err), ERR_INVALID);
    arena_done(&a);
}

// The signature is from the standard itself: RFC 7515, A.3.
static void the_example_of_the_rfc_verifies(void **state)
{
    (void)state;
    static const char jwk[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"a3\","
                              "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                              "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}";
    static const char text[] = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"
                               "cGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const uint8_t signature[64] = {14,  209, 33,  83,  121, 99,  108, 72,  60,  47,  127, 21,  88,  7,   212, 2,
                                   163, 178, 40,  3,   58,  249, 124, 126, 23,  129, 154, 195, 22,  158, 166, 101,
                                   197, 10,  7,   211, 140, 60,  112, 229, 216, 241, 45,  175, 8,   74,  84,  128,
                                   166, 101, 144, 197, 242, 147, 80,  154, 143, 63,  127, 138, 131, 163, 84,  213};
    struct jwks *j;
    struct err err;
    struct bytes t = {text, strlen(text)}, s = {signature, sizeof signature};
    assert_int_equal(parse(jwk, &j, &err), 0);
    const struct jwk *k = jwks_find(j, "a3");
    assert_int_equal(jwk_verify(k, "ES256", t, s, &err), 0);
    assert_int_equal(jwk_verify(k, "ES384", t, s, &err), ERR_UNAUTHORIZED);
    assert_int_equal(jwk_verify(k, "RS256", t, s, &err), ERR_UNAUTHORIZED);
    t.len--;
    assert_int_equal(jwk_verify(k, "ES256", t, s, &err), ERR_UNAUTHORIZED);
    jwks_free(j);
}

static void a_key_may_be_for_one_algorithm_only(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct jwks *j;
    struct err err;
    struct bytes nothing = {"", 0};
    assert_int_equal(parse(arena_printf(&a, "{\"keys\":[{\"alg\":\"RS512\",%s]}", issuer_jwk(&rsa, &a) + 1), &j, &err),
                     0);
    assert_int_equal(jwk_verify(jwks_find(j, "rsa"), "RS256", nothing, nothing, &err), ERR_UNAUTHORIZED);
    assert_string_equal(err.msg, "signed with RS256, which is not what the key \"rsa\" is for");
    jwks_free(j);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_found_by_their_name),
        cmocka_unit_test(keys_that_are_of_no_use_are_left_out),
        cmocka_unit_test(the_first_key_of_a_name_is_taken),
        cmocka_unit_test(what_is_no_jwks_is_refused),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(the_example_of_the_rfc_verifies),
        cmocka_unit_test(a_key_may_be_for_one_algorithm_only),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
