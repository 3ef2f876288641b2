// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/weights.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void weights_are_read(void **state)
{
    (void)state;
    static const char text[] = "team-a=3,team=100,b=1";
    assert_true(weights_check(text));
    assert_int_equal(weights_of(text, "team-a"), 3);
    assert_int_equal(weights_of(text, "team"), 100);
    assert_int_equal(weights_of(text, "b"), 1);
    assert_int_equal(weights_of(text, "c"), 1);
    assert_int_equal(weights_of(NULL, "c"), 1);
}

static void what_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",         "a",  "a=",   "a=0",           "a=101", "a=3,",
                                        "a=3,,b=2", "=3", "a=-1", "a=99999999999", "a=3x"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (weights_check(wrong[i]))
            fail_msg("\"%s\" passes", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_read),
        cmocka_unit_test(what_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
