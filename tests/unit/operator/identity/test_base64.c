// SPDX-License-Identifier: Apache-2.0
#include "operator/identity/base64.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const struct {
    const char *plain, *standard, *url;
} vectors[] = {
    // RFC 4648, section 10
    {"", "", ""},
    {"f", "Zg==", "Zg"},
    {"fo", "Zm8=", "Zm8"},
    {"foo", "Zm9v", "Zm9v"},
    {"foob", "Zm9vYg==", "Zm9vYg"},
    {"fooba", "Zm9vYmE=", "Zm9vYmE"},
    {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/", "-_-_"},
};

static void expect_decoded(enum base64_kind kind, const char *text, const char *want, struct arena *a)
{
    size_t n = 99;
    const uint8_t *got = base64_decode(kind, text, strlen(text), a, &n);
    assert_non_null(got);
    assert_int_equal(n, strlen(want));
    assert_string_equal((const char *)got, want);
}

static void text_and_bytes_are_the_same_thing(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        const char *plain = vectors[i].plain;
        assert_string_equal(base64_encode(BASE64_STANDARD, plain, strlen(plain), &a), vectors[i].standard);
        assert_string_equal(base64_encode(BASE64_URL, plain, strlen(plain), &a), vectors[i].url);
        expect_decoded(BASE64_STANDARD, vectors[i].standard, plain, &a);
        expect_decoded(BASE64_URL, vectors[i].url, plain, &a);
    }
    arena_done(&a);
}

static void no_other_text_stands_for_the_same_bytes(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct {
        enum base64_kind kind;
        const char *text;
    } cases[] = {
        {BASE64_STANDARD, "Zg"},   {BASE64_STANDARD, "Zg="},  {BASE64_STANDARD, "Zh=="}, {BASE64_STANDARD, "Zm9="},
        {BASE64_STANDARD, "===="}, {BASE64_STANDARD, "A==="}, {BASE64_STANDARD, "-_-_"}, {BASE64_STANDARD, "Zm9v\n"},
        {BASE64_URL, "Zg=="},      {BASE64_URL, "Zh"},        {BASE64_URL, "Zm9"},       {BASE64_URL, "+/+/"},
        {BASE64_URL, "A"},         {BASE64_URL, "Zm9v Zm9v"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t n;
        if (base64_decode(cases[i].kind, cases[i].text, strlen(cases[i].text), &a, &n))
            fail_msg("accepted: %s", cases[i].text);
    }
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_bytes_are_the_same_thing),
        cmocka_unit_test(no_other_text_stands_for_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
