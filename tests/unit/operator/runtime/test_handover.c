// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/handover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void a_leader_that_sees_less_for_a_while_releases_its_lease_once(void **state)
{
    struct handover h = {0};
    (void)state;
    assert_false(handover_due(&h, true, 1000));
    assert_false(handover_due(&h, true, 10999));
    assert_true(handover_due(&h, true, 11000));
    assert_false(handover_due(&h, true, 12000));
}

static void a_moment_in_which_it_sees_all_begins_the_time_again(void **state)
{
    struct handover h = {0};
    (void)state;
    assert_false(handover_due(&h, true, 1000));
    assert_false(handover_due(&h, false, 9000));
    assert_false(handover_due(&h, true, 12000));
    assert_true(handover_due(&h, true, 22000));
}

static void where_it_did_not_help_it_takes_its_time(void **state)
{
    struct handover h = {0};
    (void)state;
    assert_false(handover_due(&h, true, 1000));
    assert_true(handover_due(&h, true, 11000));
    assert_false(handover_due(&h, true, 100 * 1000));
    assert_false(handover_due(&h, true, 310 * 1000));
    assert_true(handover_due(&h, true, 311 * 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_that_sees_less_for_a_while_releases_its_lease_once),
        cmocka_unit_test(a_moment_in_which_it_sees_all_begins_the_time_again),
        cmocka_unit_test(where_it_did_not_help_it_takes_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
