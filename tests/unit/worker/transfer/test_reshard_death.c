// SPDX-License-Identifier: Apache-2.0
// Transfers in which a process dies or stands still at any moment: all receivers have the new weights, or all the old
// ones.
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

static void one_victim(int signal, const struct troop_scene *scene, int victim, const char *phase)
{
    struct troop_scene c = *scene;
    struct troop_result said[TROOP_MAX];
    c.victim = victim;
    c.fault = phase;
    c.signal = signal;
    c.limit_ms = signal == SIGSTOP ? TROOP_SHORT_MS : TROOP_LONG_MS;
    while (!troop_run(&c, said)) { // its time was over before it got there
        troop_agree(&c, said);
        c.limit_ms *= 2;
    }
    troop_agree(&c, said);
    if (signal == SIGKILL)
        assert_true(said[victim].died);
    for (int k = 0; signal == SIGKILL && k < c.n_receivers; k++)
        if (k != victim && strcmp(said[k].weights, "old") == 0 && !strstr(said[k].text, troop_names[victim]))
            fail_msg("%s died (%s), and %s says: %s", troop_names[victim], c.fault, troop_names[k], said[k].text);
}

static const char *const phases[] = {"met", "begun", "moving", "moved", "ready", "decided", "taken"};

// Each of those victims in each phase; of senders there are three phases.
static void victims_of(int signal, const struct troop_scene *c, const bool *which)
{
    for (int victim = 0; victim < c->n_receivers + c->n_senders; victim++)
        for (size_t i = 0; which[victim] && i < (victim < c->n_receivers ? ARRAY_LEN(phases) : 3); i++)
            one_victim(signal, c, victim, phases[i]);
}

static void victims(int signal, bool direct, bool again, int n_receivers, const bool *which)
{
    struct troop_scene c = troop_plain;
    c.n_receivers = n_receivers;
    c.direct = direct;
    c.again = again;
    victims_of(signal, &c, which);
}

static const bool all[] = {true, true, true, true, true}, deciding_of_two[] = {true, false, true, false},
                  others_of_three[] = {false, true, false, false, true}, center[] = {true, false, false, false, false};

static void all_or_none_have_new_weights_whoever_dies_at_any_moment(void **state)
{
    (void)state;
    victims(SIGKILL, true, false, 3, all);
}

static void all_or_none_have_new_weights_whoever_stands_still_at_any_moment(void **state)
{
    (void)state;
    victims(SIGSTOP, true, false, 3, center);
    victims(SIGSTOP, true, false, 3, others_of_three);
    victims(SIGSTOP, false, false, 2, deciding_of_two);
}

// With as many senders as receivers, senders write.
static void so_it_is_where_senders_write(void **state)
{
    (void)state;
    victims(SIGKILL, true, false, 2, all);
    victims(SIGSTOP, true, false, 2, all);
}

// The witness has bytes left to write, and a receiver does not hear that it keeps the old weights.
static void a_witness_that_cannot_write_waits_no_longer_than_others(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    c.n_receivers = 2;
    c.refused = TROOP_NO_SECOND_WRITE;
    one_victim(SIGSTOP, &c, 1, "begun");
}

static void so_it_is_with_connections_of_the_last_transfer(void **state)
{
    (void)state;
    victims(SIGKILL, true, true, 3, all);
    victims(SIGSTOP, true, true, 2, deciding_of_two);
}

// Senders are on another machine. Two receivers are in one container, and each relays to the others.
static const char *const machines[] = {"Bb", "Bb", "Bc", "Aa", "Aa"};

static void so_it_is_with_connections_and_relays(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    c.places = machines;
    c.alike = true;
    c.piece_max = 100 * 1000;
    victims_of(SIGKILL, &c, others_of_three);
    one_victim(SIGSTOP, &c, 1, "ready");
}

static void dies_after_the_decision(const struct troop_scene *c)
{
    struct troop_result said[TROOP_MAX];
    assert_true(troop_run(c, said));
    assert_true(said[c->victim].died);
    for (int i = 0; i < c->n_receivers; i++)
        assert_string_equal(said[i].weights, "new");
}

// The others need it only for its memory, and it finds their decision together with what it is to do.
static void a_sender_that_is_too_slow_to_serve_dies_while_it_serves(void **state)
{
    struct troop_scene c = troop_plain;
    (void)state;
    c.slow = c.victim = 4;
    c.fault = "begun";
    c.signal = SIGKILL;
    for (int again = 0; again < 2; again++) {
        c.again = again;
        dies_after_the_decision(&c);
    }
}

// It still serves those that may not have heard the decision.
static void a_witness_that_sees_who_has_come_after_the_decision_dies_while_it_serves(void **state)
{
    struct troop_scene c = troop_plain;
    (void)state;
    c.absent = true;
    c.victim = 3;
    c.fault = "begun";
    c.signal = SIGKILL;
    dies_after_the_decision(&c);
}

static void one_stands_still_and_is_named(const struct troop_scene *scene, int victim, const char *phase,
                                          const char *words)
{
    struct troop_scene c = *scene;
    struct troop_result said[TROOP_MAX];
    c.victim = victim;
    c.fault = phase;
    c.signal = SIGSTOP;
    c.limit_ms = TROOP_SHORT_MS;
    do { // on a busy machine its time is over before it gets there, or the center is late, too
        while (!troop_run(&c, said))
            c.limit_ms *= 2;
        troop_agree(&c, said);
        c.limit_ms *= 2;
    } while (!strstr(said[0].text, words) || !strstr(said[1].text, words));
}

// Others are late, too: they wait for it.
static void a_relay_that_stands_still_is_named(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    c.places = machines;
    c.alike = true;
    c.piece_max = 100 * 1000;
    one_stands_still_and_is_named(&c, 2, "moving", "(which waits for rank 2 of rollout)");
}

// Those who wait for it say so.
static void a_sender_that_stands_still_while_bytes_move_is_named(void **state)
{
    (void)state;
    struct troop_scene c = troop_plain;
    c.direct = false;
    one_stands_still_and_is_named(&c, 4, "moving", "(which waits for rank 1 of actor)");
}

// Nobody else is: there is no plan yet.
static void a_sender_that_says_nothing_is_the_only_one_named(void **state)
{
    (void)state;
    one_stands_still_and_is_named(&troop_plain, 4, "met", ": rank 1 of actor is not ready");
}

// Nobody can say then what has been decided.
static void the_dead_is_named_even_if_the_witness_has_not_seen_who_asks(void **state)
{
    struct troop_scene c = troop_plain;
    struct troop_result said[TROOP_MAX];
    (void)state;
    c.absent = true;
    c.victim = 0;
    c.fault = "moved";
    c.signal = SIGKILL;
    assert_true(troop_run(&c, said));
    assert_true(said[0].died);
    for (int i = 1; i < c.n_receivers; i++) {
        assert_string_equal(said[i].weights, "old");
        if (!strstr(said[i].text, "rank 0 of rollout"))
            fail_msg("%s says: %s", troop_names[i], said[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_or_none_have_new_weights_whoever_dies_at_any_moment),
        cmocka_unit_test(so_it_is_where_senders_write),
        cmocka_unit_test(a_witness_that_cannot_write_waits_no_longer_than_others),
        cmocka_unit_test(all_or_none_have_new_weights_whoever_stands_still_at_any_moment),
        cmocka_unit_test(so_it_is_with_connections_of_the_last_transfer),
        cmocka_unit_test(so_it_is_with_connections_and_relays),
        cmocka_unit_test(a_sender_that_is_too_slow_to_serve_dies_while_it_serves),
        cmocka_unit_test(a_witness_that_sees_who_has_come_after_the_decision_dies_while_it_serves),
        cmocka_unit_test(a_relay_that_stands_still_is_named),
        cmocka_unit_test(a_sender_that_stands_still_while_bytes_move_is_named),
        cmocka_unit_test(a_sender_that_says_nothing_is_the_only_one_named),
        cmocka_unit_test(the_dead_is_named_even_if_the_witness_has_not_seen_who_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
