// SPDX-License-Identifier: Apache-2.0
// Transfers between processes on GPUs that move by NCCL: over stand-ins for NCCL and the driver.
#include "worker/transfer/reshard.h"

#include "common/base/mem.h"
#include "tests/unit/worker/transfer/troop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>

static void values_arrive_by_nccl_packed_and_unpacked(void **state)
{
    (void)state;
    const int sizes[][2] = {{3, 2}, {1, 1}, {1, 3}, {3, 1}};
    const size_t packed[] = {1, 10 * 1000, 1000 * 1000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (size_t k = 0; k < ARRAY_LEN(packed); k++) {
            struct troop_scene c = troop_on_gpus();
            struct troop_counts counts;
            c.n_receivers = sizes[i][0];
            c.n_senders = sizes[i][1];
            c.packed = packed[k];
            assert_int_equal(troop_run_by_nccl(&c, "", &counts), 0);
            assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
        }
}

// No send is done before it was taken, as with long messages: ranks must not wait for each other in a circle.
static void members_do_not_wait_in_a_circle(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    assert_int_equal(troop_run_by_nccl(&c, "buffer 1\n", NULL), 0);
    c.n_senders = 3;
    assert_int_equal(troop_run_by_nccl(&c, "buffer 1\nslow 3\n", NULL), 0);
}

static void a_communicator_stays_for_the_next_transfer(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_counts counts;
    c.again = true;
    assert_int_equal(troop_run_by_nccl(&c, "", &counts), 0);
    assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
    assert_int_equal(counts.aborts, counts.inits); // in the end
}

// Also if the communicator that is not made never ends.
static void all_have_connections_if_somebody_cannot_join(void **state)
{
    (void)state;
    const char *const controls[] = {"nccl-init 1\n", "slow 1000000000\n", "slow 1000000000\nend-waits\n"};
    for (size_t i = 0; i < ARRAY_LEN(controls); i++) {
        struct troop_scene c = troop_on_gpus();
        struct troop_counts counts;
        c.nccl_limit = TROOP_LONG_MS / 100;
        c.leaves_thread = strstr(controls[i], "end-waits") != NULL;
        assert_true(troop_run_by_nccl(&c, controls[i], &counts) > 0);
        assert_int_equal(counts.aborts, counts.inits);
    }
}

static void who_could_not_join_is_not_asked_again_soon(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_counts counts;
    c.again = true;
    c.nccl_limit = TROOP_LONG_MS / 100;
    assert_true(troop_run_by_nccl(&c, "slow 1000000000\n", &counts) > 0);
    assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
}

static void they_are_asked_again_if_one_of_them_has_started_again(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_counts counts;
    c.again = true;
    c.started_again = c.n_receivers;
    assert_int_equal(troop_run_by_nccl(&c, "nccl-init 1\n", &counts), 0);
    assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
}

// Failures while bytes move, without a death

static void an_error_of_nccl_keeps_the_old_weights(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_result said[TROOP_MAX];
    struct troop_counts counts;
    troop_run_on_gpus(&c, "moving 6\n", said, &counts);
    troop_all_have(&c, said, "old", "IO");
    assert_int_equal(counts.aborts, counts.inits);
    for (int i = 0; i < c.n_receivers + c.n_senders; i++)
        if (!strstr(said[i].text, "nccl: weights: remote process exited or there was a network error"))
            fail_msg("%s says: %s", troop_names[i], said[i].text);
}

static void gpus_that_hang_are_waited_for_until_the_end_of_its_time(void **state)
{
    (void)state;
    struct troop_scene c = troop_on_gpus();
    struct troop_result said[TROOP_MAX];
    c.gpus_hang = true;
    c.limit_ms = TROOP_SHORT_MS;
    troop_run_on_gpus(&c, "", said, NULL);
    troop_all_have(&c, said, "old", "TIMEOUT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_arrive_by_nccl_packed_and_unpacked),
        cmocka_unit_test(members_do_not_wait_in_a_circle),
        cmocka_unit_test(a_communicator_stays_for_the_next_transfer),
        cmocka_unit_test(all_have_connections_if_somebody_cannot_join),
        cmocka_unit_test(who_could_not_join_is_not_asked_again_soon),
        cmocka_unit_test(they_are_asked_again_if_one_of_them_has_started_again),
        cmocka_unit_test(an_error_of_nccl_keeps_the_old_weights),
        cmocka_unit_test(gpus_that_hang_are_waited_for_until_the_end_of_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
