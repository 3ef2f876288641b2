// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/dryruns.h"

#include "common/base/mem.h"
#include "tests/unit/clock_fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define POD                                                                                          \
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\"},\"spec\":{\"containers\":[{\"name\":\"w\"," \
    "\"resources\":{\"requests\":{\"cpu\":\"2\",\"nvidia.com/gpu\":\"1\"}}}]}}"

enum { HASH = 42 };

static struct {
    struct clock_fake clock;
    struct dryruns *d;
    struct observations observations;
    struct arena arena;
    struct plan plan;
    int answered, refused, alone; // what the waiters heard
} t;

static const struct object one = {.kind = KIND_WORKERGROUP, .meta = {.ns = "ml", .name = "one"}};
static const struct object another = {.kind = KIND_WORKERGROUP, .meta = {.ns = "ml", .name = "another"}};
static const struct object elsewhere = {.kind = KIND_WORKERGROUP, .meta = {.ns = "web", .name = "one"}};
static const struct object placementgroup = {.kind = KIND_PLACEMENTGROUP, .meta = {.ns = "ml", .name = "one"}};

static const struct kube_response yes = {201, POD, sizeof POD - 1};
static const struct err fine = {0};

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    clock_fake_init(&t.clock, 1000, 1000);
    t.d = dryruns_new(&t.clock.clock);
    observations_init(&t.observations, 1);
    plan_init(&t.plan, &t.arena);
    plan_add(&t.plan, ACTION_STATUS, STAGE_FIRST);
    plan_add(&t.plan, ACTION_DRY_RUN, STAGE_FIRST)->hash = HASH;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dryruns_free(t.d);
    observations_done(&t.observations);
    arena_done(&t.arena);
    return 0;
}

static void on_told(void *ctx, const struct kube_response *response, const struct err *err)
{
    (void)ctx;
    t.answered += response != NULL;
    t.refused += !response && err->code;
    t.alone += !response && !err->code;
}

static bool joins(const struct object *owner)
{
    return dryruns_join(t.d, owner, HASH, on_told, NULL);
}

static bool knows(const struct object *owner)
{
    return dryruns_answer(t.d, owner, &t.plan, &t.observations);
}

static void tried(const struct object *owner)
{
    assert_false(joins(owner));
    dryruns_tell(t.d, owner, HASH, &yes, &fine);
}

static struct err failure(enum err_code code)
{
    struct err err = ERR_INIT;
    err_set(&err, code, "no");
    return err;
}

static void what_was_tried_for_one_is_known_for_another(void **state)
{
    (void)state;
    assert_false(knows(&another));
    tried(&one);
    assert_true(knows(&another));
    assert_int_equal(t.observations.memory.dry_run, DRY_RUN_OK);
    assert_int_equal(t.observations.memory.dry_run_hash, HASH);
    assert_int_equal(resources_get(&t.observations.memory.needs->requests, RESOURCE_CPU), 2000);
}

static void but_not_elsewhere_nor_for_other_pods(void **state)
{
    (void)state;
    tried(&one);
    assert_false(knows(&elsewhere));
    assert_false(knows(&placementgroup));
    t.plan.actions[1].hash = HASH + 1;
    assert_false(knows(&another));
    plan_init(&t.plan, &t.arena);
    assert_false(knows(&another)); // this one asks for no dry run
}

static void of_several_dry_runs_each_answer_that_is_known_is_noted(void **state)
{
    (void)state;
    struct action *further = plan_add(&t.plan, ACTION_DRY_RUN, STAGE_FIRST);
    further->hash = HASH + 1;
    further->further = true;
    tried(&one);
    assert_true(knows(&another));
    assert_int_equal(t.observations.memory.further[DRY_RUNS_FURTHER - 1], 0);
    assert_false(dryruns_join(t.d, &one, HASH + 1, on_told, NULL));
    dryruns_tell(t.d, &one, HASH + 1, &yes, &fine);
    assert_true(knows(&another));
    assert_int_equal(t.observations.memory.further[DRY_RUNS_FURTHER - 1], HASH + 1);
    assert_int_equal(t.observations.memory.dry_run_hash, HASH);
}

static void an_answer_is_soon_out_of_date(void **state)
{
    (void)state;
    tried(&one);
    clock_fake_advance(&t.clock, DRYRUNS_FRESH_MS - 1);
    assert_true(knows(&another));
    clock_fake_advance(&t.clock, 1);
    assert_false(knows(&another));
    assert_false(joins(&another));
}

static void those_that_come_meanwhile_wait_for_it(void **state)
{
    (void)state;
    assert_false(joins(&one));
    assert_true(joins(&another));
    assert_true(joins(&another));
    assert_false(joins(&elsewhere));
    assert_false(knows(&another));
    dryruns_tell(t.d, &one, HASH, &yes, &fine);
    assert_int_equal(t.answered, 2);
    assert_true(knows(&another));
    dryruns_tell(t.d, &elsewhere, HASH, &yes, &fine);
}

static void a_refusal_is_nobody_elses(void **state)
{
    (void)state;
    static const enum err_code verdicts[] = {ERR_INVALID, ERR_FORBIDDEN};
    for (size_t i = 0; i < ARRAY_LEN(verdicts); i++) {
        struct err err = failure(verdicts[i]);
        assert_false(joins(&one));
        assert_true(joins(&another));
        dryruns_tell(t.d, &one, HASH, NULL, &err);
        assert_int_equal(t.alone, i + 1);
        assert_false(knows(&another));
    }
    assert_false(joins(&another)); // this one makes the dry run itself
    dryruns_tell(t.d, &another, HASH, &yes, &fine);
}

static void a_request_that_fails_fails_for_all_that_wait(void **state)
{
    (void)state;
    struct err err = failure(ERR_TIMEOUT);
    assert_false(joins(&one));
    assert_true(joins(&another));
    dryruns_tell(t.d, &one, HASH, NULL, &err);
    assert_int_equal(t.refused, 1);
    assert_false(knows(&another));
}

static void what_pods_are_made_with_changes_during_a_dry_run(void **state)
{
    (void)state;
    tried(&placementgroup);
    assert_false(joins(&one));
    assert_true(joins(&another));
    dryruns_forget(t.d);
    assert_false(knows(&placementgroup));
    dryruns_tell(t.d, &one, HASH, &yes, &fine);
    assert_int_equal(t.alone, 1);
    assert_false(knows(&another));
}

static void a_dry_run_that_was_made_beside_another_changes_nothing(void **state)
{
    (void)state;
    dryruns_tell(t.d, &one, HASH, &yes, &fine);
    assert_false(knows(&one));
}

static void there_are_not_many_and_none_is_long(void **state)
{
    (void)state;
    static char text[DRYRUNS_ANSWER_MAX + 2];
    struct kube_response big = {201, text, sizeof text - 1};
    memset(text, ' ', sizeof text - 1);
    tried(&one);
    for (uint64_t i = 1; i < DRYRUNS_MAX; i++) {
        assert_false(dryruns_join(t.d, &one, HASH + i, on_told, NULL));
        dryruns_tell(t.d, &one, HASH + i, &yes, &fine);
    }
    assert_true(knows(&another));
    assert_false(dryruns_join(t.d, &elsewhere, HASH, on_told, NULL));
    dryruns_tell(t.d, &elsewhere, HASH, &big, &fine);
    assert_true(knows(&another));
    tried(&placementgroup);
    assert_true(knows(&placementgroup));
    assert_false(knows(&another)); // it was the oldest answer
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_tried_for_one_is_known_for_another, setup, teardown),
        cmocka_unit_test_setup_teardown(but_not_elsewhere_nor_for_other_pods, setup, teardown),
        cmocka_unit_test_setup_teardown(of_several_dry_runs_each_answer_that_is_known_is_noted, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_is_soon_out_of_date, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_come_meanwhile_wait_for_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_is_nobody_elses, setup, teardown),
        cmocka_unit_test_setup_teardown(a_request_that_fails_fails_for_all_that_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(what_pods_are_made_with_changes_during_a_dry_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dry_run_that_was_made_beside_another_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(there_are_not_many_and_none_is_long, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
