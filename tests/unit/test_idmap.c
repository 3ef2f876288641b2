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
    assert_null(idmap_get(&m, 0)); // no id, and the mark of free slots
    assert_ptr_equal(idmap_del(&m, 1), &a);
    assert_null(idmap_del(&m, 1));
    assert_null(idmap_get(&m, 1));
    assert_int_equal(m.used, 1);
    idmap_done(&m);
}

// Few ids, so that holes close over runs of neighbours, against a plain array.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_found_until_it_is_deleted),
        cmocka_unit_test(it_agrees_with_an_array_under_random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
