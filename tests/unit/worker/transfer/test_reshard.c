// SPDX-License-Identifier: Apache-2.0
// Transfers between processes: what arrives, and what is said if nothing does.
#include "worker/transfer/reshard.h"

#include "common/base/mem.h"
#include "tests/unit/worker/transfer/troop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void values_arrive_by_memory_and_by_connections(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    for (int direct = 0; direct < 2; direct++) {
        struct troop_scene c = troop_plain;
        c.direct = direct;
        troop_run(&c, said);
        troop_all_have(&c, said, "new", "OK");
        for (int i = 0; i < c.n_receivers; i++) {
            assert_int_equal(said[i].direct > 0, direct);
            assert_int_equal(said[i].sent > 0, !direct);
        }
    }
}

static uint64_t sum_written(const struct troop_result *said, const struct troop_scene *c)
{
    uint64_t written = 0;
    for (int i = 0; i < c->n_receivers + c->n_senders; i++)
        written += said[i].written;
    return written;
}

// A sender has rows, and a receiver columns of them, which lie together there. If all have all, a run is as long on
// both sides.
static void senders_write_what_lies_apart_here_and_together_there(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    const struct {
        int n_receivers;
        bool alike, direct, written;
    } rows[] = {{2, false, true, true}, {2, true, true, false}, {2, false, false, false}, {3, false, true, false}};
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        struct troop_scene c = troop_plain;
        uint64_t direct = 0;
        c.n_receivers = rows[k].n_receivers;
        c.alike = rows[k].alike;
        c.direct = rows[k].direct;
        troop_run(&c, said);
        troop_all_have(&c, said, "new", "OK");
        for (int i = 0; i < c.n_receivers; i++)
            direct += said[i].direct;
        assert_int_equal(direct > 0, rows[k].direct);
        assert_int_equal(sum_written(said, &c), rows[k].written ? direct : 0);
    }
}

static void senders_that_may_not_write_are_read(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    for (enum troop_refusal refused = TROOP_NO_READ; refused <= TROOP_NO_WRITE; refused++) {
        struct troop_scene c = troop_plain;
        c.n_receivers = 2;
        c.refused = refused;
        troop_run(&c, said);
        troop_all_have(&c, said, "new", "OK");
        assert_int_equal(sum_written(said, &c), 0);
        for (int i = 0; i < c.n_receivers; i++)
            assert_true(said[i].direct > 0);
    }
}

static void a_write_that_fails_keeps_the_old_weights(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    c.n_receivers = 2;
    c.refused = TROOP_NO_SECOND_WRITE;
    troop_run(&c, said);
    troop_all_have(&c, said, "old", "GONE");
    for (int i = 0; i < c.n_receivers; i++)
        if (!strstr(said[i].text, ": writing to its memory: Operation not permitted"))
            fail_msg("%s says: %s", troop_names[i], said[i].text);
}

static void from_gpu_to_gpu_by_handles_or_by_connections(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    const char *const controls[] = {"", "export 1\n", "import 1\n", ""};
    for (size_t k = 0; k < ARRAY_LEN(controls); k++) {
        struct troop_scene c = troop_plain;
        c.on_device[0] = c.on_device[1] = true;
        c.direct = k != 3;
        troop_run_on_gpus(&c, controls[k], said, NULL);
        troop_all_have(&c, said, "new", "OK");
        for (int i = 0; i < c.n_receivers; i++)
            assert_int_equal(said[i].direct > 0, k == 0);
    }
}

static void between_gpus_and_memory_of_the_host(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    for (int direct = 0; direct < 2; direct++)
        for (int side = 0; side < 2; side++) {
            struct troop_scene c = troop_plain;
            c.on_device[side] = true;
            c.direct = direct;
            troop_run_on_gpus(&c, "", said, NULL);
            troop_all_have(&c, said, "new", "OK");
        }
}

static void a_gpu_without_room_keeps_the_old_weights(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    c.on_device[1] = true;
    troop_run_on_gpus(&c, "memory 2000000\n", said, NULL);
    for (int i = 0; i < c.n_receivers; i++)
        assert_string_equal(said[i].weights, "old");
    assert_string_equal(said[0].code, "NOMEM");
}

static void gpus_that_hang_are_waited_for_until_the_end_of_its_time(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    c.on_device[0] = c.on_device[1] = c.gpus_hang = true;
    c.limit_ms = TROOP_SHORT_MS;
    troop_run_on_gpus(&c, "", said, NULL);
    troop_all_have(&c, said, "old", "TIMEOUT");
    assert_non_null(strstr(said[0].text, "the time of the transfer is over: the GPU was not done within "));
}

// Members are on pretended machines and in pretended containers.

struct crossing {
    const char *const *places; // three receivers, two senders
    bool direct;
    uint64_t given, relayed, read; // bytes: by senders and by relays into connections, and out of memory
};

static void check_crossing(const struct crossing *x, const struct troop_scene *scene, const char *control)
{
    struct troop_scene c = *scene;
    struct troop_result said[TROOP_MAX];
    uint64_t given = 0, relayed = 0, read = 0, sent = 0;
    c.alike = true;
    c.places = x->places;
    c.direct = x->direct;
    troop_run_on_gpus(&c, control, said, NULL);
    troop_all_have(&c, said, "new", "OK");
    for (int i = 0; i < 5; i++) {
        *(i < 3 ? &relayed : &given) += said[i].given;
        read += i < 3 ? said[i].direct : 0;
        sent += i < 3 ? said[i].sent : 0;
    }
    assert_int_equal(given, x->given);
    assert_int_equal(relayed, x->relayed);
    assert_int_equal(read, x->read);
    assert_int_equal(sent, given + relayed);
}

static const char *const beside[] = {"Bb", "Bb", "Bb", "Aa", "Aa"}, *const in_pods[] = {"Bb", "Bc", "Bd", "Aa", "Aa"},
                         *const two_pods[] = {"Bb", "Bc", "Bc", "Aa", "Aa"},
                         *const two_nodes[] = {"Bb", "Cc", "Cc", "Aa", "Aa"};

static void what_several_of_a_node_get_crosses_to_it_once(void **state)
{
    (void)state;
    enum { ALL = TROOP_BYTES };
    const struct crossing crossings[] = {
        {beside, true, ALL, 0, 2 * ALL},
        {in_pods, true, ALL, 2 * ALL, 0},
        {two_pods, true, ALL, ALL, ALL},
        {two_nodes, false, 2 * ALL, ALL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(crossings); i++) {
        struct troop_scene c = troop_plain;
        c.piece_max = i % 2 ? RESHARD_PIECE_MAX : 100 * 1000; // one relay, or all receivers are relays
        check_crossing(&crossings[i], &c, "");
    }
}

static void so_it_does_to_gpus(void **state)
{
    (void)state;
    enum { ALL = TROOP_BYTES };
    const struct crossing by_handles = {beside, true, ALL, 0, 2 * ALL}, refused = {beside, true, ALL, 2 * ALL, 0};
    struct troop_scene c = troop_plain;
    c.on_device[0] = c.on_device[1] = true;
    c.piece_max = 100 * 1000;
    check_crossing(&by_handles, &c, "");
    check_crossing(&refused, &c, "import 1\n");
}

static void one_to_one_and_one_to_many(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    const int sizes[][2] = {{1, 1}, {1, 3}, {3, 1}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct troop_scene c = troop_plain;
        c.n_receivers = sizes[i][0];
        c.n_senders = sizes[i][1];
        c.direct = i != 1;
        troop_run(&c, said);
        troop_all_have(&c, said, "new", "OK");
    }
}

static void what_does_not_match_is_said_and_nothing_moves(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    c.mismatch = true;
    troop_run(&c, said);
    troop_all_have(&c, said, "old", "OK");
    for (int i = 0; i < 5; i++)
        assert_non_null(strstr(said[i].text, "'narrow' has shape (64, 16384) in actor and (30, 7) in rollout"));
}

static void ranks_of_a_group_that_differ_are_named(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    c.differs = true;
    troop_run(&c, said);
    troop_all_have(&c, said, "old", "INVALID");
    for (int i = 0; i < 5; i++)
        assert_non_null(strstr(said[i].text, "says other weights than rank 0"));
}

static void who_does_not_come_is_named(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    c.late = 4;
    c.limit_ms = TROOP_SHORT_MS;
    do { // on a busy machine others are late, too
        troop_run(&c, said);
        for (int i = 0; i < 4; i++)
            assert_string_not_equal(said[i].code, "OK");
        c.limit_ms *= 2;
    } while (!strstr(said[0].text, "rank 1 of actor did not arrive within"));
}

static void who_is_canceled_says_so_to_all(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    c.canceled = true;
    troop_run(&c, said);
    troop_all_have(&c, said, "old", "CANCELED");
    assert_non_null(strstr(said[1].text, "rank 0 of actor: canceled"));
}

// If the memory of the senders is read directly, the witness may hear of the decision before it sees the members that
// have come.
static void who_is_slow_hears_what_was_decided(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    c.absent = true;
    troop_run(&c, said);
    troop_all_have(&c, said, "new", "OK");
}

static void who_knows_each_other_does_not_meet_again(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    for (int k = 0; k < 4; k++) {
        struct troop_scene c = troop_plain;
        c.again = true;
        c.direct = k % 2;
        c.n_receivers = k < 2 ? 3 : 1;
        troop_run(&c, said);
        troop_all_have(&c, said, "new", "OK");
    }
}

static void what_is_left_of_a_transfer_is_not_taken_for_the_next_one(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    struct troop_scene c = troop_plain;
    c.again = c.rest = true;
    c.direct = false;
    troop_run(&c, said);
    troop_all_have(&c, said, "new", "OK");
}

// As when two clients begin at once, and each reaches some ranks first.
static void who_is_in_another_transfer_does_not_take_part(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    struct troop_scene c = troop_plain;
    c.again = c.apart = true;
    c.limit_ms = TROOP_SHORT_MS;
    troop_run(&c, said);
    for (int i = 0; i < 5; i++) {
        assert_string_not_equal(said[i].code, "OK");
        assert_string_equal(said[i].weights, i < c.n_receivers ? "old" : "any");
    }
}

// It is a process of somebody else in the namespace, or it is broken.
static void who_lies_does_not_spoil_weights(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    for (enum troop_lie lie = TROOP_LIES_ABOUT_SIDE; lie <= TROOP_LIES_ABOUT_ERROR; lie++) {
        struct troop_scene c = troop_plain;
        c.lie = lie;
        troop_run(&c, said);
        for (int i = 0; i < c.n_receivers; i++) {
            assert_string_equal(said[i].weights, "old");
            assert_string_equal(said[i].code, "PROTO");
        }
        assert_non_null(strstr(said[0].text, lie == TROOP_LIES_ABOUT_SIDE ? "rank 1 of actor" : "rank 0 of actor"));
    }
}

static void a_center_that_says_too_little_is_not_believed(void **state)
{
    (void)state;
    struct troop_result said[TROOP_MAX];
    for (enum troop_lie lie = TROOP_SAYS_NOTHING; lie <= TROOP_SAYS_LITTLE; lie++) {
        struct troop_scene c = troop_plain;
        c.lie = lie;
        troop_run(&c, said);
        for (int i = 1; i < c.n_receivers + c.n_senders; i++) {
            assert_string_equal(said[i].weights, i < c.n_receivers ? "old" : "any");
            assert_non_null(strstr(said[i].text, "the first rank of the receivers says nonsense"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_arrive_by_memory_and_by_connections),
        cmocka_unit_test(senders_write_what_lies_apart_here_and_together_there),
        cmocka_unit_test(senders_that_may_not_write_are_read),
        cmocka_unit_test(a_write_that_fails_keeps_the_old_weights),
        cmocka_unit_test(from_gpu_to_gpu_by_handles_or_by_connections),
        cmocka_unit_test(between_gpus_and_memory_of_the_host),
        cmocka_unit_test(a_gpu_without_room_keeps_the_old_weights),
        cmocka_unit_test(gpus_that_hang_are_waited_for_until_the_end_of_its_time),
        cmocka_unit_test(what_several_of_a_node_get_crosses_to_it_once),
        cmocka_unit_test(so_it_does_to_gpus),
        cmocka_unit_test(one_to_one_and_one_to_many),
        cmocka_unit_test(what_does_not_match_is_said_and_nothing_moves),
        cmocka_unit_test(ranks_of_a_group_that_differ_are_named),
        cmocka_unit_test(who_does_not_come_is_named),
        cmocka_unit_test(who_is_canceled_says_so_to_all),
        cmocka_unit_test(who_is_slow_hears_what_was_decided),
        cmocka_unit_test(who_knows_each_other_does_not_meet_again),
        cmocka_unit_test(what_is_left_of_a_transfer_is_not_taken_for_the_next_one),
        cmocka_unit_test(who_is_in_another_transfer_does_not_take_part),
        cmocka_unit_test(who_lies_does_not_spoil_weights),
        cmocka_unit_test(a_center_that_says_too_little_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
