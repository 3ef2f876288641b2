// SPDX-License-Identifier: Apache-2.0
#include "common/base/map.h"

#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void an_empty_map_answers(void **state)
{
    (void)state;
    struct map m = MAP_INIT;
    size_t i = 0;
    assert_null(map_get(&m, "a"));
    assert_false(map_has(&m, "a"));
    assert_null(map_del(&m, "a"));
    assert_false(map_next(&m, &i, NULL, NULL));
    map_done(&m);
}

static void keys_are_copied_and_values_borrowed(void **state)
{
    (void)state;
    struct map m = MAP_INIT;
    char key[] = "ml/a";
    int one = 1, two = 2;
    assert_null(map_set(&m, key, &one));
    key[0] = 'x';
    assert_ptr_equal(map_get(&m, "ml/a"), &one);
    assert_ptr_equal(map_set(&m, "ml/a", &two), &one);
    assert_int_equal(m.used, 1);
    assert_ptr_equal(map_del(&m, "ml/a"), &two);
    assert_int_equal(m.used, 0);
    map_set(&m, "null", NULL);
    assert_true(map_has(&m, "null"));
    map_done(&m);
}

// Against an array indexed by the key's number, under random sets and deletes that collide, wrap around and grow.
static void it_agrees_with_a_plain_array(void **state)
{
    (void)state;
    enum { KEYS = 300, STEPS = 40000 };
    static char values[KEYS];
    bool there[KEYS] = {0};
    size_t live = 0;
    struct map m = MAP_INIT;
    struct rand r;
    rand_seed(&r, 42);
    for (int step = 0; step < STEPS; step++) {
        size_t k = (size_t)rand_below(&r, KEYS);
        char key[16];
        snprintf(key, sizeof key, "ns/pod-%zu", k);
        if (rand_below(&r, 2)) {
            assert_ptr_equal(map_set(&m, key, &values[k]), there[k] ? &values[k] : NULL);
            live += !there[k];
            there[k] = true;
        } else {
            assert_ptr_equal(map_del(&m, key), there[k] ? &values[k] : NULL);
            live -= there[k];
            there[k] = false;
        }
        assert_int_equal(m.used, live);
    }
    size_t seen = 0, i = 0;
    const char *key;
    void *value;
    while (map_next(&m, &i, &key, &value)) {
        char want[16];
        snprintf(want, sizeof want, "ns/pod-%zu", (size_t)((char *)value - values));
        assert_string_equal(key, want);
        assert_true(there[(char *)value - values]);
        seen++;
    }
    assert_int_equal(seen, live);
    map_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_answers),
        cmocka_unit_test(keys_are_copied_and_values_borrowed),
        cmocka_unit_test(it_agrees_with_a_plain_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
