// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct fixture {
    struct arena arena;
    struct plan plan;
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){0};
    plan_init(&f.plan, &f.arena);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    arena_done(&((struct fixture *)*state)->arena);
    return 0;
}

static void a_new_plan_wants_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->plan.n, 0);
    assert_int_equal(f->plan.requeue_ms, -1);
    assert_string_equal(plan_describe(&f->plan, &f->arena), "");
}

static void actions_are_in_the_order_of_their_stages_and_then_of_their_coming(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++) // more than fit without growing
        plan_add(&f->plan, ACTION_CREATE_POD, i % 3)->grace_s = i;
    assert_int_equal(f->plan.n, 100);
    for (size_t i = 1; i < f->plan.n; i++) {
        const struct action *a = &f->plan.actions[i - 1], *b = &f->plan.actions[i];
        assert_true(a->stage < b->stage || (a->stage == b->stage && a->grace_s < b->grace_s));
    }
}

static void a_delete_keeps_the_pods_own_grace_unless_told(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(plan_add(&f->plan, ACTION_DELETE_POD, STAGE_FIRST)->grace_s, -1);
}

static void the_earliest_look_wins(void **state)
{
    struct fixture *f = *state;
    plan_requeue(&f->plan, 500);
    plan_requeue(&f->plan, 900);
    assert_int_equal(f->plan.requeue_ms, 500);
    plan_requeue(&f->plan, -7); // an overdue look is due now
    assert_int_equal(f->plan.requeue_ms, 0);
    assert_int_equal(f->plan.n, 0);
}

static void a_plan_reads_as_one_line_an_action(void **state)
{
    struct fixture *f = *state;
    static const char *const contended[] = {"n3"};
    plan_add(&f->plan, ACTION_DRY_RUN, STAGE_FIRST);
    plan_add(&f->plan, ACTION_CREATE_SERVICE, STAGE_FIRST)->name = "a";
    struct action *x = plan_add(&f->plan, ACTION_CREATE_POD, STAGE_SECOND);
    x->name = "a-0-0";
    x->node = "n1";
    plan_add(&f->plan, ACTION_DELETE_POD, STAGE_SECOND)->name = "a-0-1";
    x = plan_add(&f->plan, ACTION_DELETE_POD, STAGE_SECOND);
    x->name = "a-0-2";
    x->grace_s = 0;
    plan_add(&f->plan, ACTION_STATUS, STAGE_SECOND)->body = "{}";
    x = plan_add(&f->plan, ACTION_EVENT, STAGE_THIRD);
    x->warning = true;
    x->reason = "Restarting";
    x->note = "rank 0 failed";
    plan_requeue(&f->plan, 250);
    f->plan.waits_for_room = f->plan.defers_status = f->plan.gives_back = true;
    f->plan.contended = (const char **)contended;
    f->plan.n_contended = 1;
    assert_string_equal(plan_describe(&f->plan, &f->arena), "0 dry-run pod\n"
                                                            "0 create service a\n"
                                                            "1 create pod a-0-0 on n1\n"
                                                            "1 delete pod a-0-1\n"
                                                            "1 delete pod a-0-2 by force\n"
                                                            "1 status {}\n"
                                                            "2 event Warning Restarting: rank 0 failed\n"
                                                            "again in 250 ms\n"
                                                            "again when there is more room\n"
                                                            "a status waits for what comes next\n"
                                                            "the gang is given back\n"
                                                            "node n3 is avoided next time\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_plan_wants_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(actions_are_in_the_order_of_their_stages_and_then_of_their_coming, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_delete_keeps_the_pods_own_grace_unless_told, setup, teardown),
        cmocka_unit_test_setup_teardown(the_earliest_look_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plan_reads_as_one_line_an_action, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
