// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_refusal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SOME = 7, OTHERS = 8, NOW = 1000 };

static void nobody_is_refused_before_a_failure(void **state)
{
    const struct nccl_refusal r = {.members = 0};
    (void)state;
    assert_false(nccl_refusal_holds(&r, 0, 0));
    assert_false(nccl_refusal_holds(&r, SOME, NOW));
}

static void only_the_same_processes_are_refused(void **state)
{
    struct nccl_refusal r = {.members = 0};
    (void)state;
    nccl_refusal_add(&r, SOME, NOW);
    assert_true(nccl_refusal_holds(&r, SOME, NOW));
    assert_false(nccl_refusal_holds(&r, OTHERS, NOW));
    nccl_refusal_add(&r, OTHERS, NOW);
    assert_false(nccl_refusal_holds(&r, SOME, NOW));
}

static void the_time_until_they_are_asked_again_doubles_up_to_a_day(void **state)
{
    struct nccl_refusal r = {.members = 0};
    int64_t now = NOW, wait = NCCL_REFUSAL_MS;
    (void)state;
    for (int i = 0; i < 20; i++) {
        nccl_refusal_add(&r, SOME, now);
        assert_true(nccl_refusal_holds(&r, SOME, now + wait - 1));
        assert_false(nccl_refusal_holds(&r, SOME, now + wait));
        now += wait;
        wait = 2 * wait < NCCL_REFUSAL_MAX_MS ? 2 * wait : NCCL_REFUSAL_MAX_MS;
    }
    assert_int_equal(wait, NCCL_REFUSAL_MAX_MS);
    nccl_refusal_add(&r, OTHERS, now);
    assert_false(nccl_refusal_holds(&r, OTHERS, now + NCCL_REFUSAL_MS));
}

static void the_time_is_short_again_after_they_have_joined(void **state)
{
    struct nccl_refusal r = {.members = 0};
    (void)state;
    nccl_refusal_add(&r, SOME, NOW);
    nccl_refusal_end(&r, OTHERS);
    assert_true(nccl_refusal_holds(&r, SOME, NOW));
    nccl_refusal_end(&r, SOME);
    assert_false(nccl_refusal_holds(&r, SOME, NOW));
    nccl_refusal_add(&r, SOME, NOW);
    assert_false(nccl_refusal_holds(&r, SOME, NOW + NCCL_REFUSAL_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_refused_before_a_failure),
        cmocka_unit_test(only_the_same_processes_are_refused),
        cmocka_unit_test(the_time_until_they_are_asked_again_doubles_up_to_a_day),
        cmocka_unit_test(the_time_is_short_again_after_they_have_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
