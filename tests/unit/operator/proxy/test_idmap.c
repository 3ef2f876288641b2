// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/idmap.h"

#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void an_id_is_found_until_it_is_deleted(void **state)
{
    (void)state;
    struct idmap m = IDMAP_INIT;
    int a, b;
    assert_null(idmap_get(&m, 1));
    assert_null(idmap_del(&m, 1));
    idmap_add(&m, 1, &a);
    idmap_add(&m, UINT32_MAX, &b);
    assert_ptr_equal(idmap_get(&m, 1), &a);
    assert_ptr_equal(idmap_get(&m, UINT32_MAX), &b);
    assert_null(idmap_get(&m, 0)); // 0 is not an id, but marks free slots
    assert_ptr_equal(idmap_del(&m, 1), &a);
    assert_null(idmap_del(&m, 1));
    assert_null(idmap_get(&m, 1));
    assert_int_equal(m.used, 1);
    idmap_done(&m);
}

// Few ids, so that a deletion moves runs of neighbours. A plain array is the reference.
static void it_agrees_with_an_array_under_random_changes(void **state)
{
    (void)state;
    enum { IDS = 600 };
    static char there[IDS + 1];
    struct idmap m = IDMAP_INIT;
    struct rand rnd;
    rand_seed(&rnd, 7);
    uint32_t used = 0;
    for (int step = 0; step < 40000; step++) {
        uint32_t id = 1 + (uint32_t)rand_below(&rnd, IDS), number = id * 0x01000000u + id;
        assert_ptr_equal(idmap_get(&m, number), there[id] ? &there[id] : NULL);
        if (there[id]) {
            assert_ptr_equal(idmap_del(&m, number), &there[id]);
            used--;
        } else {
            idmap_add(&m, number, &there[id]);
            used++;
        }
        there[id] = !there[id];
        assert_int_equal(m.used, used);
    }
    idmap_done(&m);
}

// Ids come and go as calls do: each is deleted when 1,000 later ones exist, except for some that stay.
static void ids_that_are_counted_up_are_not_hashed(void **state)
{
    (void)state;
    struct idmap m = IDMAP_INIT;
    static char values[30001];
    for (uint32_t id = 1; id <= 30000; id++) {
        assert_null(idmap_get(&m, id));
        idmap_add(&m, id, &values[id]);
        if (id > 1000 && id % 1000)
            assert_ptr_equal(idmap_del(&m, id - 1000), &values[id - 1000]);
    }
    assert_int_equal(m.salt, 0);
    for (uint32_t id = 1; id <= 30000; id++)
        assert_ptr_equal(idmap_get(&m, id), id > 29000 || id % 1000 == 0 ? &values[id] : NULL);
    idmap_done(&m);
}

static void ids_that_are_chosen_to_collide_are_hashed(void **state)
{
    (void)state;
    enum { IDS = 4000 };
    static char values[IDS];
    struct idmap m = IDMAP_INIT;
    for (uint32_t i = 0; i < IDS; i++)
        idmap_add(&m, (i + 1) << 16, &values[i]);
    assert_int_not_equal(m.salt, 0);
    for (uint32_t i = 0; i < IDS; i += 2)
        assert_ptr_equal(idmap_del(&m, (i + 1) << 16), &values[i]);
    for (uint32_t i = 0; i < IDS; i++)
        assert_ptr_equal(idmap_get(&m, (i + 1) << 16), i % 2 ? &values[i] : NULL);
    idmap_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_found_until_it_is_deleted),
        cmocka_unit_test(it_agrees_with_an_array_under_random_changes),
        cmocka_unit_test(ids_that_are_counted_up_are_not_hashed),
        cmocka_unit_test(ids_that_are_chosen_to_collide_are_hashed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
