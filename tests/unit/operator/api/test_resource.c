// SPDX-License-Identifier: Apache-2.0
#include "operator/api/resource.h"

#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void the_first_names_have_fixed_ids(void **state)
{
    (void)state;
    assert_int_equal(resource_id("cpu"), RESOURCE_CPU);
    assert_int_equal(resource_id("memory"), RESOURCE_MEMORY);
    assert_int_equal(resource_id("pods"), RESOURCE_PODS);
    assert_int_equal(resource_id("ephemeral-storage"), RESOURCE_EPHEMERAL_STORAGE);
    assert_int_equal(resource_id("nvidia.com/gpu"), RESOURCE_GPU);
    assert_string_equal(resource_name(RESOURCE_GPU), RESOURCE_GPU_NAME);
    int id = resource_id("example.com/fpga");
    assert_true(id > RESOURCE_GPU);
    assert_int_equal(resource_id_n("example.com/fpga, and more", 16, false), id);
    assert_string_equal(resource_name(id), "example.com/fpga");
    assert_int_equal(resource_count(), id + 1);
    assert_string_equal(resource_name(-1), "?");
    assert_string_equal(resource_name(RESOURCE_MAX), "?");
}

static struct resources make(struct arena *a, size_t n, const struct resource *items)
{
    return (struct resources){arena_memdup(a, items, n * sizeof *items), n};
}
#define MAKE(a, ...) \
    make(a, sizeof((struct resource[]){__VA_ARGS__}) / sizeof(struct resource), (struct resource[]){__VA_ARGS__})

static void sums_and_maxima_go_by_resource(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct resources x = MAKE(&a, {RESOURCE_CPU, 1000}, {RESOURCE_GPU, 4000});
    struct resources y = MAKE(&a, {RESOURCE_CPU, 500}, {RESOURCE_MEMORY, 7000}, {RESOURCE_GPU, 8000});
    struct resources sum = x, max = x, nothing = {0};
    resources_add(&sum, &y, &a);
    resources_max(&max, &y, &a);
    struct resources want_sum = MAKE(&a, {RESOURCE_CPU, 1500}, {RESOURCE_MEMORY, 7000}, {RESOURCE_GPU, 12000});
    struct resources want_max = MAKE(&a, {RESOURCE_CPU, 1000}, {RESOURCE_MEMORY, 7000}, {RESOURCE_GPU, 8000});
    assert_true(resources_equal(&sum, &want_sum));
    assert_true(resources_equal(&max, &want_max));
    assert_false(resources_equal(&sum, &max));
    assert_int_equal(resources_get(&sum, RESOURCE_PODS), 0);
    assert_int_equal(resources_get(&x, RESOURCE_CPU), 1000); // a change of the copy does not change it
    resources_add(&nothing, &x, &a);
    assert_true(resources_equal(&nothing, &x));
    arena_done(&a);
}

static void amounts_saturate_and_zeros_go_away(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct resources x = MAKE(&a, {RESOURCE_CPU, INT64_MAX - 1}, {RESOURCE_GPU, 4000});
    struct resources y = MAKE(&a, {RESOURCE_CPU, 2}, {RESOURCE_GPU, -4000});
    resources_add(&x, &y, &a);
    assert_int_equal(resources_get(&x, RESOURCE_CPU), INT64_MAX);
    assert_int_equal(x.n, 1);
    arena_done(&a);
}

static struct resources random_set(struct rand *rand, struct arena *a)
{
    struct resource items[8];
    size_t n = 0;
    for (int id = 0; id < 8; id++)
        if (rand_below(rand, 2))
            items[n++] = (struct resource){id, rand_range(rand, 1, 1000)};
    return make(a, n, items);
}

static void merging_agrees_with_a_table(void **state)
{
    (void)state;
    struct rand rand;
    rand_seed(&rand, 3);
    for (int round = 0; round < 500; round++) {
        struct arena a = ARENA_INIT;
        struct resources x = random_set(&rand, &a), y = random_set(&rand, &a), sum = x, max = x;
        resources_add(&sum, &y, &a);
        resources_max(&max, &y, &a);
        for (int id = 0; id < 8; id++) {
            int64_t p = resources_get(&x, id), q = resources_get(&y, id);
            assert_int_equal(resources_get(&sum, id), p + q);
            assert_int_equal(resources_get(&max, id), p > q ? p : q);
        }
        for (size_t i = 1; i < sum.n; i++)
            assert_true(sum.items[i - 1].id < sum.items[i].id);
        arena_done(&a);
    }
}

static int count_new_names(bool offered)
{
    char name[40];
    int before = resource_count();
    for (int i = 0; i < 2 * RESOURCE_MAX; i++) {
        snprintf(name, sizeof name, "example.com/%s-%d", offered ? "offered" : "asked", i);
        resource_id_n(name, strlen(name), offered);
    }
    return resource_count() - before;
}

// This test must be the last, because it fills the table of names.
static void pods_cannot_use_up_the_names_of_nodes(void **state)
{
    (void)state;
    char name[400];
    memset(name, 'x', sizeof name);
    assert_int_equal(resource_id_n(name, sizeof name, false), RESOURCE_OTHER);
    assert_int_equal(resource_id_n(name, sizeof name, true), RESOURCE_OTHER);
    assert_true(count_new_names(false) > 0);
    assert_int_equal(resource_count(), RESOURCE_MAX / 2);
    assert_int_equal(resource_id("example.com/one-more"), RESOURCE_OTHER);
    int id = resource_id_n("example.com/one-more", strlen("example.com/one-more"), true);
    assert_int_equal(id, RESOURCE_MAX / 2);
    assert_int_equal(resource_id("example.com/one-more"), id); // now its pods count, too
    count_new_names(true);
    assert_int_equal(resource_count(), RESOURCE_MAX);
    assert_int_equal(resource_id_n("example.com/too-many", strlen("example.com/too-many"), true), RESOURCE_OTHER);
    assert_int_equal(resource_id("nvidia.com/gpu"), RESOURCE_GPU); // those that have an id keep it
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_names_have_fixed_ids),        cmocka_unit_test(sums_and_maxima_go_by_resource),
        cmocka_unit_test(amounts_saturate_and_zeros_go_away),    cmocka_unit_test(merging_agrees_with_a_table),
        cmocka_unit_test(pods_cannot_use_up_the_names_of_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
