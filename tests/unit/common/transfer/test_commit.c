// SPDX-License-Identifier: Apache-2.0
// All receivers take the new weights, or all keep the old ones: processes and their connections are simulated in random
// orders. In each run one process dies or stands still at a random moment, at most.
#include "common/transfer/commit.h"

#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { RECEIVERS = 4, WITNESS = RECEIVERS, PROCESSES, QUEUE = 24, RUNS = 200 * 1000, STEPS = 400 };
enum message { NOTHING, READY, PROPOSE, ASK, TAKE, KEEP, END };

struct pipe_ { // from one process to another; END is behind all that was sent before
    enum message queue[QUEUE];
    int n;
};

struct world {
    struct rand rand;
    struct pipe_ pipes[PROCESSES][PROCESSES];
    struct commit_center center;
    struct commit_receiver receivers[RECEIVERS]; // number 0 is the center's own side
    enum commit_decision register_;
    bool dead[PROCESSES], stands[PROCESSES];
    bool witness_gone;    // the center knows
    enum message telling; // what the center is telling the receivers, one in each step, and how many know it
    int told;
    int n;    // receivers, 2 at least
    int late; // a step from which on somebody's time may be over
};

static void put(struct world *w, int from, int to, enum message m)
{
    struct pipe_ *p = &w->pipes[from][to];
    assert_true(p->n < QUEUE);
    p->queue[p->n++] = m;
}

static void follow_center(struct world *w, enum commit_next next)
{
    if (next == COMMIT_PROPOSE)
        put(w, 0, WITNESS, PROPOSE);
    if (next == COMMIT_SAY_TAKE || next == COMMIT_SAY_KEEP) {
        w->telling = next == COMMIT_SAY_TAKE ? TAKE : KEEP;
        w->told = 0;
    }
}

static void follow_receiver(struct world *w, int i, enum commit_next next)
{
    if (next == COMMIT_SAY_READY)
        put(w, i, 0, READY);
    if (next == COMMIT_ASK)
        put(w, i, WITNESS, ASK);
}

static void take(struct world *w, int from, int to, enum message m)
{
    enum commit_decision said = m == TAKE ? COMMIT_TAKE : COMMIT_KEEP;
    if (to == 0 && from == WITNESS) {
        w->witness_gone = w->witness_gone || m == END;
        follow_center(w, m == END ? commit_center_alone(&w->center) : commit_center_answered(&w->center, said));
    } else if (to == 0) {
        follow_center(w, m == READY ? commit_center_ready(&w->center, !w->witness_gone)
                                    : commit_center_failed(&w->center));
    } else if (to == WITNESS && m == PROPOSE) {
        put(w, WITNESS, from, commit_witness_proposed(&w->register_) == COMMIT_TAKE ? TAKE : KEEP);
    } else if (to == WITNESS && m == ASK) {
        put(w, WITNESS, from, commit_witness_asked(&w->register_) == COMMIT_TAKE ? TAKE : KEEP);
        if (w->register_ == COMMIT_KEEP)
            put(w, WITNESS, 0, KEEP);
    } else if (to != WITNESS && m == END) {
        follow_receiver(w, to,
                        from == 0 ? commit_receiver_center_lost(&w->receivers[to])
                                  : commit_receiver_witness_lost(&w->receivers[to]));
    } else if (to != WITNESS) {
        commit_receiver_told(&w->receivers[to], said);
    }
}

static void end_process(struct world *w, int i)
{
    w->dead[i] = true;
    for (int k = 0; k < PROCESSES; k++)
        put(w, i, k, END);
}

// The witness leaves when the others need it no more.
static bool leaves(const struct world *w)
{
    for (int i = 1; i < w->n; i++)
        if (!w->dead[i] && w->receivers[i].decision == COMMIT_OPEN)
            return false;
    return !w->pipes[0][WITNESS].n;
}

// A process does one thing: reads a message, finishes its weights, or finds that its time is over.
static bool step(struct world *w, int i, int n, bool *pulled)
{
    int from = (int)rand_below(&w->rand, PROCESSES);
    struct pipe_ *p = &w->pipes[from][i];
    if (w->dead[i] || w->stands[i] || (i >= w->n && i < RECEIVERS))
        return false;
    if (i == 0 && w->telling && w->told < w->n) { // it may die between two of them
        if (w->told == 0)
            commit_receiver_told(&w->receivers[0], w->center.decision);
        else
            put(w, 0, w->told, w->telling);
        w->told++;
        return true;
    }
    if (p->n) {
        enum message m = p->queue[0];
        memmove(p->queue, p->queue + 1, (size_t)--p->n * sizeof *p->queue);
        take(w, from, i, m);
        return true;
    }
    if (i < RECEIVERS && !pulled[i] && rand_below(&w->rand, 2)) {
        pulled[i] = true;
        if (i)
            follow_receiver(w, i, commit_receiver_pulled(&w->receivers[i]));
        else if (w->center.decision == COMMIT_OPEN)
            follow_center(w, commit_center_ready(&w->center, !w->witness_gone));
        return true;
    }
    if (n < w->late || rand_below(&w->rand, 4))
        return false;
    if (i == WITNESS && leaves(w))
        end_process(w, i);
    bool nobody_decides = w->dead[0] || w->stands[0] || w->dead[WITNESS] || w->stands[WITNESS];
    if (i == 0)
        follow_center(w, commit_center_failed(&w->center));
    else if (i < RECEIVERS && !w->receivers[i].asks && nobody_decides) // they wait longer than the center
        follow_receiver(w, i, commit_receiver_late(&w->receivers[i]));
    return true;
}

static void run(struct world *w, uint64_t seed, bool faults)
{
    bool pulled[RECEIVERS] = {false};
    *w = (struct world){.rand = {0}};
    rand_seed(&w->rand, seed);
    int victim = (int)rand_below(&w->rand, PROCESSES + 1), when = (int)rand_below(&w->rand, 60);
    bool dies = rand_below(&w->rand, 2);
    w->late = faults ? (int)rand_below(&w->rand, 100) : STEPS;
    w->n = (int)rand_range(&w->rand, 2, RECEIVERS);
    commit_center_init(&w->center, w->n);
    for (int i = 0; i < w->n; i++)
        commit_receiver_init(&w->receivers[i], true);
    for (int n = 0; n < STEPS; n++) {
        if (faults && n == when && victim < PROCESSES) {
            if (dies)
                end_process(w, victim);
            else
                w->stands[victim] = true;
        }
        if (!dies && n == when + STEPS / 2 && victim < PROCESSES)
            w->stands[victim] = false;
        for (int i = 0; i < PROCESSES; i++)
            (void)step(w, (int)rand_below(&w->rand, PROCESSES), n, pulled);
    }
}

// With only one failure all agree, and know that they do.
static void check_same(const struct world *w, uint64_t seed, int *taken, int *kept)
{
    enum commit_decision said = COMMIT_OPEN;
    for (int i = 0; i < w->n; i++) {
        if (w->dead[i])
            continue;
        if (w->receivers[i].decision == COMMIT_OPEN || (said != COMMIT_OPEN && w->receivers[i].decision != said) ||
            !w->receivers[i].certain)
            fail_msg("seed %llu: receiver %d has decision %d, another one %d", (unsigned long long)seed, i,
                     (int)w->receivers[i].decision, (int)said);
        said = w->receivers[i].decision;
    }
    *taken += said == COMMIT_TAKE;
    *kept += said == COMMIT_KEEP;
}

static void all_take_them_if_nothing_happens(void **state)
{
    (void)state;
    static struct world w;
    int taken = 0, kept = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        run(&w, seed, false);
        check_same(&w, seed, &taken, &kept);
    }
    assert_int_equal(taken, 1000);
}

static void all_or_none_take_them_whatever_one_process_does(void **state)
{
    (void)state;
    static struct world w;
    int taken = 0, kept = 0;
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        run(&w, seed, true);
        check_same(&w, seed, &taken, &kept);
    }
    assert_true(taken > RUNS / 10); // both happen often
    assert_true(kept > RUNS / 10);
}

static void a_receiver_that_loses_both_keeps_the_old_ones_and_knows_of_the_doubt(void **state)
{
    (void)state;
    struct commit_receiver r;
    commit_receiver_init(&r, true);
    assert_int_equal(commit_receiver_pulled(&r), COMMIT_SAY_READY);
    assert_int_equal(commit_receiver_center_lost(&r), COMMIT_ASK);
    assert_int_equal(commit_receiver_witness_lost(&r), COMMIT_WAIT);
    assert_int_equal(r.decision, COMMIT_KEEP);
    assert_false(r.certain);
    commit_receiver_init(&r, true);
    assert_int_equal(commit_receiver_pulled(&r), COMMIT_SAY_READY);
    assert_int_equal(commit_receiver_late(&r), COMMIT_ASK);
    assert_int_equal(commit_receiver_witness_lost(&r), COMMIT_WAIT);
    assert_int_equal(r.decision, COMMIT_OPEN); // the center decides alone
    commit_receiver_gives_up(&r);
    assert_int_equal(r.decision, COMMIT_KEEP);
    assert_false(r.certain);
    commit_receiver_init(&r, false);
    assert_int_equal(commit_receiver_center_lost(&r), COMMIT_WAIT); // it was not ready: nobody has them
    assert_int_equal(r.decision, COMMIT_KEEP);
    assert_true(r.certain);
}

static void the_only_receiver_needs_no_witness(void **state)
{
    (void)state;
    struct commit_center c;
    commit_center_init(&c, 1);
    assert_int_equal(commit_center_ready(&c, false), COMMIT_SAY_TAKE);
    assert_int_equal(commit_center_failed(&c), COMMIT_WAIT); // too late
    assert_int_equal(c.decision, COMMIT_TAKE);
}

static void a_center_waits_for_the_witness_but_not_for_ever(void **state)
{
    (void)state;
    struct commit_center c;
    commit_center_init(&c, 1);
    assert_int_equal(commit_center_ready(&c, true), COMMIT_PROPOSE);
    assert_int_equal(commit_center_failed(&c), COMMIT_WAIT);
    assert_int_equal(commit_center_gives_up(&c), COMMIT_SAY_KEEP);
    assert_int_equal(commit_center_answered(&c, COMMIT_TAKE), COMMIT_WAIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_take_them_if_nothing_happens),
        cmocka_unit_test(all_or_none_take_them_whatever_one_process_does),
        cmocka_unit_test(a_receiver_that_loses_both_keeps_the_old_ones_and_knows_of_the_doubt),
        cmocka_unit_test(the_only_receiver_needs_no_witness),
        cmocka_unit_test(a_center_waits_for_the_witness_but_not_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
