// SPDX-License-Identifier: Apache-2.0
#include "operator/api/object_peek.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define POD                                                                                                         \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a-0\",\"generateName\":\"a-\",\"namespace\":" \
    "\"ml\","                                                                                                       \
    "\"uid\":\"u-1\",\"resourceVersion\":\"17\",\"generation\":1},\"spec\":{}}"

// Reads from memory of exactly that size, so a sanitizer sees a read after the end.
static bool peek(const char *text, size_t len, struct object_peek *ret)
{
    _cleanup_(free_p) char *copy = xmalloc(len + 1);
    memcpy(copy + 1, text, len);
    return object_peek(copy + 1, len, ret);
}

static void it_sees_which_object_it_is_and_its_version(void **state)
{
    (void)state;
    struct object_peek g;
    assert_true(peek(POD, strlen(POD), &g));
    assert_string_equal(g.ns, "ml");
    assert_string_equal(g.name, "a-0");
    assert_string_equal(g.uid, "u-1");
    assert_string_equal(g.version, "17");
    const char *node = "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u-2\",\"resourceVersion\":\"5\"}}";
    assert_true(peek(node, strlen(node), &g));
    assert_string_equal(g.ns, "");
    assert_string_equal(g.name, "n1");
}

static void what_is_cut_off_before_the_version_tells_nothing(void **state)
{
    (void)state;
    struct object_peek g;
    size_t enough = (size_t)(strstr(POD, "17\"") - POD) + 3;
    for (size_t len = 0; len <= strlen(POD); len++)
        assert_int_equal(peek(POD, len, &g), len >= enough);
}

static void what_is_not_written_as_the_api_server_does_is_left_to_the_decoder(void **state)
{
    (void)state;
    static const char *const others[] = {
        "[]",
        "{}",
        "{\"spec\":{},\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{ \"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"\\u0061\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"\xc3\xa4\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":7,\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"a\",\"labels\":{},\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\",\"uid\":\"u\"}}",
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"123456789012345678901234567890123\"}}",
    };
    struct object_peek g;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (peek(others[i], strlen(others[i]), &g))
            fail_msg("took %s", others[i]);
}

static void an_object_that_cannot_be_decoded_is_identified_in_any_order(void **state)
{
    (void)state;
    const char *bad =
        "{ \"spec\": {\"init\": \"\\u0000\"}, \"metadata\": {\"annotations\": {\"uid\": \"}\"}, \"uid\": \"u\", "
        "\"labels\": 7, \"namespace\": \"ml\", \"name\": \"a\", \"resourceVersion\": \"1\"}}";
    static const char *const nothing[] = {
        "",
        "[]",
        "{}",
        "{\"metadata\":7}",
        "{\"metadata\":{\"name\":\"a\"}}",
        "{\"metadata\":{\"uid\":\"u\",\"name\":7}}",
    };
    struct object_peek g;
    assert_true(object_identify(bad, strlen(bad), &g));
    assert_string_equal(g.ns, "ml");
    assert_string_equal(g.name, "a");
    assert_string_equal(g.uid, "u");
    assert_string_equal(g.version, "1");
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++)
        assert_false(object_identify(nothing[i], strlen(nothing[i]), &g));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_sees_which_object_it_is_and_its_version),
        cmocka_unit_test(what_is_cut_off_before_the_version_tells_nothing),
        cmocka_unit_test(what_is_not_written_as_the_api_server_does_is_left_to_the_decoder),
        cmocka_unit_test(an_object_that_cannot_be_decoded_is_identified_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
