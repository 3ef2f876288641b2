// SPDX-License-Identifier: Apache-2.0
// How the operator divides its memory among peers.
#include "common/base/mem.h"
#include "common/base/memory_limit.h"
#include "operator/gateway/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static void what_is_promised_is_at_most_half_of_any_limit(void **state)
{
    (void)state;
    for (size_t limit = 64 * MIB; limit <= 8192 * MIB; limit += 8 * MIB) {
        struct budget b = budget_of(limit);
        assert_in_range(b.all, 16 * MIB, limit / 2);
        assert_in_range(b.session, 1, b.all / 4);
        assert_in_range(b.whole, 1, b.session);
        assert_in_range(b.queue, 1, b.all / 8);
        assert_in_range(b.unadmitted, 1, b.all / 16);
    }
}

static void without_a_limit_it_is_two_gibibytes(void **state)
{
    (void)state;
    struct budget b = budget_of(0);
    assert_int_equal(b.all, 2048 * MIB);
    assert_int_equal(b.session, 512 * MIB);
    assert_int_equal(b.queue, 256 * MIB);
    assert_int_equal(b.whole, 64 * MIB);
    assert_int_equal(b.unadmitted, 16 * MIB);
}

static void limits_of_control_groups_are_read(void **state)
{
    (void)state;
    assert_int_equal(memory_limit_of("max\n"), 0);
    assert_int_equal(memory_limit_of(""), 0);
    assert_int_equal(memory_limit_of("3221225472\n"), 3072 * MIB);
    assert_int_equal(memory_limit_of("9223372036854771712\n"), 0); // cgroup version 1 writes this for "no limit"
    assert_true(memory_limit() > 0);
}

static void limits_of_options_have_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t want;
    } cases[] = {{"1073741824", 1024 * MIB},
                 {"512Mi", 512 * MIB},
                 {"3Gi", 3072 * MIB},
                 {"2G", 2000000000},
                 {"64Ki", 65536},
                 {"", 0},
                 {"-1", 0},
                 {"3gb", 0},
                 {"99999999999Gi", 0},
                 {"1.5Gi", 0},
                 {"0", 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (memory_limit_parse(cases[i].text) != cases[i].want)
            fail_msg("%s: %zu", cases[i].text, memory_limit_parse(cases[i].text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_promised_is_at_most_half_of_any_limit),
        cmocka_unit_test(without_a_limit_it_is_two_gibibytes),
        cmocka_unit_test(limits_of_control_groups_are_read),
        cmocka_unit_test(limits_of_options_have_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
