// SPDX-License-Identifier: Apache-2.0
// Which members of a transfer use NCCL, and which ones have connections: over stand-ins for NCCL and the driver.
#include "worker/transfer/reshard.h"

#include "common/base/mem.h"
#include "tests/unit/worker/transfer/troop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void only_pairs_that_need_a_connection_use_nccl(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_result said[TROOP_MAX];
    struct troop_counts counts;
    // The first sender is in the pod of the receivers, which read what it has.
    const char *const places[] = {"Aa", "Aa", "Aa", "Aa", "Bb"};
    c.direct = true;
    c.places = places;
    troop_run_on_gpus(&c, "", said, &counts);
    troop_all_have(&c, said, "new", "OK");
    assert_int_equal(troop_given(&c, said), 0);
    assert_int_equal(counts.inits, 4);
    for (int i = 0; i < c.n_receivers; i++)
        assert_true(said[i].direct > 0 && said[i].nccl > 0);
}

// The first sender is in the communicator of the first transfer, and its weights are read in the second one.
static void a_communicator_stays_though_one_of_its_members_does_not_need_it(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_result said[TROOP_MAX];
    struct troop_counts counts;
    const char *const places[] = {"Aa", "Aa", "Aa", "Aa", "Bb"};
    c.again = c.direct = true;
    c.places = places;
    troop_run_on_gpus(&c, "", said, &counts);
    troop_all_have(&c, said, "new", "OK");
    assert_int_equal(troop_given(&c, said), 0);
    assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
    for (int i = 0; i < c.n_receivers; i++)
        assert_true(said[i].direct > 0 && said[i].nccl > 0);
}

static void what_several_of_a_node_get_crosses_to_it_once(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_result said[TROOP_MAX];
    const char *const places[] = {"Bb", "Bb", "Bb", "Aa", "Aa"};
    uint64_t direct = 0, nccl = 0;
    c.direct = c.alike = true;
    c.places = places;
    c.piece_max = 100 * 1000;
    troop_run_on_gpus(&c, "", said, NULL);
    troop_all_have(&c, said, "new", "OK");
    for (int i = 0; i < c.n_receivers; i++) {
        direct += said[i].direct;
        nccl += said[i].nccl;
    }
    assert_int_equal(troop_given(&c, said), 0);
    assert_int_equal(nccl, TROOP_BYTES);
    assert_int_equal(direct, 2 * TROOP_BYTES); // relayed, by handles
}

static void who_cannot_use_nccl_has_connections(void **state)
{
    (void)state;
    const int odd[] = {1, 4};
    for (enum troop_oddity oddity = TROOP_WANTS_NO_NCCL; oddity <= TROOP_LACKS_NCCL; oddity++)
        for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
            struct troop_scene c = troop_on_gpus();
            struct troop_counts counts;
            c.oddity = oddity;
            c.odd = odd[i];
            uint64_t given = troop_run_by_nccl(&c, "", &counts);
            assert_true(given > 0 && given < TROOP_BYTES); // the others use it
            assert_int_equal(counts.inits, 4);
        }
}

static void nobody_uses_nccl_where_the_center_cannot_or_versions_differ(void **state)
{
    (void)state;
    const struct {
        enum troop_oddity oddity;
        int odd;
    } rows[] = {{TROOP_WANTS_NO_NCCL, 0}, {TROOP_LACKS_NCCL, 0}, {TROOP_OTHER_NCCL, 1}, {TROOP_OTHER_NCCL, 3}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct troop_scene c = troop_on_gpus();
        struct troop_counts counts;
        c.oddity = rows[i].oddity;
        c.odd = rows[i].odd;
        assert_true(troop_run_by_nccl(&c, "", &counts) > 0);
        assert_int_equal(counts.inits, 0);
    }
}

static void members_with_one_gpu_have_connections(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_counts counts;
    c.oddity = TROOP_SAME_GPU;
    c.odd = 4;
    assert_true(troop_run_by_nccl(&c, "", &counts) > 0);
    assert_int_equal(counts.inits, 3);
    assert_true(troop_run_by_nccl(&c, "one-gpu\n", &counts) > 0);
    assert_int_equal(counts.inits, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_pairs_that_need_a_connection_use_nccl),
        cmocka_unit_test(a_communicator_stays_though_one_of_its_members_does_not_need_it),
        cmocka_unit_test(what_several_of_a_node_get_crosses_to_it_once),
        cmocka_unit_test(who_cannot_use_nccl_has_connections),
        cmocka_unit_test(nobody_uses_nccl_where_the_center_cannot_or_versions_differ),
        cmocka_unit_test(members_with_one_gpu_have_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
