// SPDX-License-Identifier: Apache-2.0
// How kubectl-cadre reads answers.
#include "cli/document.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static cJSON *read_text(const char *text, struct err *err)
{
    struct buf b = BUF_INIT(1 << 10);
    buf_puts(&b, text);
    cJSON *d = document_read(&b, err);
    buf_done(&b);
    return d;
}

static void members_of_another_type_count_as_missing(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    _cleanup_(document_free) cJSON *d = read_text("{\"s\":\"a\",\"n\":-7,\"l\":[1],\"z\":null}", &err);
    assert_string_equal(document_str(d, "s"), "a");
    assert_true(document_str_is(d, "s", "a"));
    assert_false(document_str_is(d, "n", "a"));
    assert_int_equal(document_i64(d, "n"), -7);
    assert_null(document_str(d, "n"));
    assert_null(document_str(d, "S"));
    assert_null(document_get(d, "z"));
    assert_null(document_str(document_get(d, "l"), "s"));
    assert_null(document_str(NULL, "s"));
    assert_int_equal(document_i64(d, "s"), 0);
    assert_int_equal(document_i64(d, "z"), 0);
    assert_int_equal(document_i64(NULL, "n"), 0);
}

// A double would turn 9007199254740993 into 9007199254740992.
static void a_number_is_right_or_missing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t want;
    } cases[] = {{"{\"n\":9007199254740991}", INT64_C(9007199254740991)},
                 {"{\"n\":9007199254740993}", 0},
                 {"{\"n\":-9007199254740993}", 0},
                 {"{\"n\":1e300}", 0},
                 {"{\"n\":1.5}", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = ERR_INIT;
        _cleanup_(document_free) cJSON *d = read_text(cases[i].text, &err);
        if (document_i64(d, "n") != cases[i].want)
            fail_msg("%s: %lld", cases[i].text, (long long)document_i64(d, "n"));
    }
}

static void what_is_no_document_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "{\"a\":1} x", "{\"a\"}", "error"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct err err = ERR_INIT;
        if (read_text(texts[i], &err) || err.code != ERR_INVALID)
            fail_msg("%s: %d %s", texts[i], err.code, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_another_type_count_as_missing),
        cmocka_unit_test(a_number_is_right_or_missing),
        cmocka_unit_test(what_is_no_document_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
