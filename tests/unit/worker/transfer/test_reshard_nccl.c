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

static struct troop_scene on_gpus(void)
{
    struct troop_scene c = troop_plain;
    c.direct = false;
    c.by_nccl = true;
    return c;
}

static uint64_t sum_given(const struct troop_scene *c, const struct troop_said *said)
{
    uint64_t given = 0, sent = 0;
    for (int i = 0; i < c->n_receivers + c->n_senders; i++) {
        given += said[i].given;
        sent += said[i].sent;
    }
    assert_int_equal(sent, given);
    return given;
}

// Bytes that went through connections, though members have GPUs.
static uint64_t run(const struct troop_scene *c, const char *control, struct troop_counts *counts)
{
    struct troop_said said[TROOP_MAX];
    troop_run_on_gpus(c, control, said, counts);
    troop_all_have(c, said, "new", "OK");
    for (int i = 0; i < c->n_receivers; i++) {
        assert_int_equal(said[i].direct, 0);
        assert_true(said[i].nccl + said[i].sent > 0);
    }
    return sum_given(c, said);
}

static void values_arrive_by_nccl_packed_and_unpacked(void **state)
{
    (void)state;
    const int sizes[][2] = {{3, 2}, {1, 1}, {1, 3}, {3, 1}};
    const size_t packed[] = {1, 10 * 1000, 1000 * 1000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (size_t k = 0; k < ARRAY_LEN(packed); k++) {
            struct troop_scene c = on_gpus();
            struct troop_counts counts;
            c.n_receivers = sizes[i][0];
            c.n_senders = sizes[i][1];
            c.packed = packed[k];
            assert_int_equal(run(&c, "", &counts), 0);
            assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
        }
}

// No send is done before it was taken, as with long messages: ranks must not wait for each other in a circle.
static void members_do_not_wait_in_a_circle(void **state)
{
    (void)state;
    struct troop_scene c = on_gpus();
    assert_int_equal(run(&c, "buffer 1\n", NULL), 0);
    c.n_senders = 3;
    assert_int_equal(run(&c, "buffer 1\nslow 3\n", NULL), 0);
}

static void a_communicator_stays_for_the_next_transfer(void **state)
{
    (void)state;
    struct troop_scene c = on_gpus();
    struct troop_counts counts;
    c.again = true;
    assert_int_equal(run(&c, "", &counts), 0);
    assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
    assert_int_equal(counts.aborts, counts.inits); // in the end
}

static void only_pairs_that_need_a_connection_use_nccl(void **state)
{
    (void)state;
    struct troop_scene c = on_gpus();
    struct troop_said said[TROOP_MAX];
    struct troop_counts counts;
    // The first sender is in the pod of the receivers, which read what it has.
    const char *const places[] = {"Aa", "Aa", "Aa", "Aa", "Bb"};
    c.direct = true;
    c.places = places;
    troop_run_on_gpus(&c, "", said, &counts);
    troop_all_have(&c, said, "new", "OK");
    assert_int_equal(sum_given(&c, said), 0);
    assert_int_equal(counts.inits, 4);
    for (int i = 0; i < c.n_receivers; i++)
        assert_true(said[i].direct > 0 && said[i].nccl > 0);
}

static void what_several_of_a_node_get_crosses_to_it_once(void **state)
{
    (void)state;
    struct troop_scene c = on_gpus();
    struct troop_said said[TROOP_MAX];
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
    assert_int_equal(sum_given(&c, said), 0);
    assert_int_equal(nccl, TROOP_BYTES);
    assert_int_equal(direct, 2 * TROOP_BYTES); // relayed, by handles
}

// Fallback

static void who_cannot_use_nccl_has_connections(void **state)
{
    (void)state;
    const int odd[] = {1, 4};
    for (enum troop_oddity oddity = TROOP_WANTS_NO_NCCL; oddity <= TROOP_LACKS_NCCL; oddity++)
        for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
            struct troop_scene c = on_gpus();
            struct troop_counts counts;
            c.oddity = oddity;
            c.odd = odd[i];
            uint64_t given = run(&c, "", &counts);
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
        struct troop_scene c = on_gpus();
        struct troop_counts counts;
        c.oddity = rows[i].oddity;
        c.odd = rows[i].odd;
        assert_true(run(&c, "", &counts) > 0);
        assert_int_equal(counts.inits, 0);
    }
}

static void members_with_one_gpu_have_connections(void **state)
{
    (void)state;
    struct troop_scene c = on_gpus();
    struct troop_counts counts;
    c.oddity = TROOP_SAME_GPU;
    c.odd = 4;
    assert_true(run(&c, "", &counts) > 0);
    assert_int_equal(counts.inits, 3);
    assert_true(run(&c, "one-gpu\n", &counts) > 0);
    assert_int_equal(counts.inits, 0);
}

// Also if the communicator that is not made never ends.
static void all_have_connections_if_somebody_cannot_join(void **state)
{
    (void)state;
    const char *const controls[] = {"nccl-init 1\n", "slow 1000000000\n", "slow 1000000000\nend-waits\n"};
    for (size_t i = 0; i < ARRAY_LEN(controls); i++) {
        struct troop_scene c = on_gpus();
        struct troop_counts counts;
        c.nccl_limit = TROOP_LONG_MS / 100;
        c.leaves_thread = strstr(controls[i], "end-waits") != NULL;
        assert_true(run(&c, controls[i], &counts) > 0);
        assert_int_equal(counts.aborts, counts.inits);
    }
}

static void who_could_not_join_is_not_asked_again_soon(void **state)
{
    (void)state;
    struct troop_scene c = on_gpus();
    struct troop_counts counts;
    c.again = true;
    c.nccl_limit = TROOP_LONG_MS / 100;
    assert_true(run(&c, "slow 1000000000\n", &counts) > 0);
    assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
}

static void they_are_asked_again_if_one_of_them_has_started_again(void **state)
{
    (void)state;
    struct troop_scene c = on_gpus();
    struct troop_counts counts;
    c.again = true;
    c.started_again = c.n_receivers;
    assert_int_equal(run(&c, "nccl-init 1\n", &counts), 0);
    assert_int_equal(counts.inits, c.n_receivers + c.n_senders);
}

// Failures while bytes move

static void an_error_of_nccl_keeps_the_old_weights(void **state)
{
    (void)state;
    struct troop_scene c = on_gpus();
    struct troop_said said[TROOP_MAX];
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
    struct troop_scene c = on_gpus();
    struct troop_said said[TROOP_MAX];
    c.gpus_hang = true;
    c.limit_ms = TROOP_SHORT_MS;
    troop_run_on_gpus(&c, "", said, NULL);
    troop_all_have(&c, said, "old", "TIMEOUT");
}

static void check_agreement(const struct troop_scene *c, const struct troop_said *said)
{
    const char *weights = NULL;
    for (int i = 0; i < c->n_receivers; i++) {
        if (said[i].died)
            continue;
        weights = weights ? weights : said[i].weights;
        if (strcmp(said[i].weights, weights) != 0 || strcmp(weights, "MIXED") == 0)
            fail_msg("victim %d, %s, signal %d: receiver %d has %s weights, another one %s (%s)", c->victim, c->fault,
                     c->signal, i, said[i].weights, weights, said[i].text);
    }
}

static const char *const phases[] = {"met", "joining", "begun", "moving", "moved", "ready", "decided", "taken"};

static void who_dies_at_any_moment_is_named_and_all_or_none_have_new_weights(void **state)
{
    (void)state;
    struct troop_said said[TROOP_MAX];
    const int victims[] = {0, 2, 4};
    for (int again = 0; again < 2; again++)
        for (size_t v = 0; v < ARRAY_LEN(victims); v++)
            for (size_t i = 0; i < (victims[v] < 3 ? ARRAY_LEN(phases) : 4); i++) {
                struct troop_scene c = on_gpus();
                c.again = again;
                c.victim = victims[v];
                c.fault = phases[i];
                c.signal = SIGKILL;
                assert_true(troop_run_on_gpus(&c, "", said, NULL));
                check_agreement(&c, said);
                assert_true(said[c.victim].died);
                for (int k = 0; k < c.n_receivers; k++)
                    if (k != c.victim && strcmp(said[k].weights, "old") == 0 &&
                        !strstr(said[k].text, troop_names[c.victim]))
                        fail_msg("%s died (%s), and %s says: %s", troop_names[c.victim], c.fault, troop_names[k],
                                 said[k].text);
            }
}

static void one_stands_still_and_is_named(const char *phase, const char *words)
{
    struct troop_said said[TROOP_MAX];
    struct troop_scene c = on_gpus();
    c.victim = 4;
    c.fault = phase;
    c.signal = SIGSTOP;
    c.limit_ms = 8 * TROOP_SHORT_MS;
    do { // on a busy machine its time is over before it gets there, or the center is late, too
        while (!troop_run_on_gpus(&c, "", said, NULL))
            c.limit_ms *= 2;
        check_agreement(&c, said);
        c.limit_ms *= 2;
    } while (!strstr(said[0].text, words) || !strstr(said[1].text, words));
}

static void who_stands_still_while_bytes_move_is_named(void **state)
{
    (void)state;
    one_stands_still_and_is_named("moving", "(which waits for rank 1 of actor)");
}

// Nobody can join without it.
static void who_stands_still_before_is_named(void **state)
{
    (void)state;
    one_stands_still_and_is_named("met", "rank 1 of actor is not ready");
}

// The others have joined, and the center waits for this one.
static void who_stands_still_while_it_joins_is_named(void **state)
{
    (void)state;
    one_stands_still_and_is_named("joining", "rank 1 of actor is not ready");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_arrive_by_nccl_packed_and_unpacked),
        cmocka_unit_test(members_do_not_wait_in_a_circle),
        cmocka_unit_test(a_communicator_stays_for_the_next_transfer),
        cmocka_unit_test(only_pairs_that_need_a_connection_use_nccl),
        cmocka_unit_test(what_several_of_a_node_get_crosses_to_it_once),
        cmocka_unit_test(who_cannot_use_nccl_has_connections),
        cmocka_unit_test(nobody_uses_nccl_where_the_center_cannot_or_versions_differ),
        cmocka_unit_test(members_with_one_gpu_have_connections),
        cmocka_unit_test(all_have_connections_if_somebody_cannot_join),
        cmocka_unit_test(who_could_not_join_is_not_asked_again_soon),
        cmocka_unit_test(they_are_asked_again_if_one_of_them_has_started_again),
        cmocka_unit_test(an_error_of_nccl_keeps_the_old_weights),
        cmocka_unit_test(gpus_that_hang_are_waited_for_until_the_end_of_its_time),
        cmocka_unit_test(who_dies_at_any_moment_is_named_and_all_or_none_have_new_weights),
        cmocka_unit_test(who_stands_still_while_bytes_move_is_named),
        cmocka_unit_test(who_stands_still_before_is_named),
        cmocka_unit_test(who_stands_still_while_it_joins_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
