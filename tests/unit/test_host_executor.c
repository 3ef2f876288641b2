// SPDX-License-Identifier: Apache-2.0
#include "worker/host/executor.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

struct note {
    struct executor_job job;
    char letter;
    sem_t *begun, *go; // NULL = does not wait
};

static char ran[64], done[64];
static size_t n_ran, n_done;
static pthread_t ran_on;

static void run_note(struct executor_job *job)
{
    struct note *n = CONTAINER_OF(job, struct note, job);
    if (n->begun)
        sem_post(n->begun);
    if (n->go)
        sem_wait(n->go);
    ran_on = pthread_self();
    ran[n_ran++] = n->letter;
}

static void note_done(struct executor_job *job)
{
    done[n_done++] = CONTAINER_OF(job, struct note, job)->letter;
}

#define NOTE(c)                                                    \
    {                                                              \
        .job = {.run = run_note, .done = note_done}, .letter = (c) \
    }

struct fixture {
    struct loop *loop;
    struct executor *executor;
    sem_t begun, go;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->executor = executor_new(f->loop, 3);
    sem_init(&f->begun, 0, 0);
    sem_init(&f->go, 0, 0);
    memset(ran, 0, sizeof ran);
    memset(done, 0, sizeof done);
    n_ran = n_done = 0;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    executor_free(f->executor);
    loop_free(f->loop);
    sem_destroy(&f->begun);
    sem_destroy(&f->go);
    free(f);
    return 0;
}

static void turn_until_done(struct fixture *f, size_t n)
{
    while (n_done < n)
        loop_run_once(f->loop, 1000);
}

static void jobs_run_in_order_on_another_thread_and_come_back_to_this_one(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a'), b = NOTE('b'), c = NOTE('c');
    assert_int_equal(executor_submit(f->executor, &a.job, &err), 0);
    assert_int_equal(executor_submit(f->executor, &b.job, &err), 0);
    assert_int_equal(executor_submit(f->executor, &c.job, &err), 0);
    assert_string_equal(done, ""); // never inside the call
    turn_until_done(f, 3);
    assert_string_equal(ran, "abc");
    assert_string_equal(done, "abc");
    assert_false(pthread_equal(ran_on, pthread_self()));
}

static void more_than_may_wait_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a'), b = NOTE('b'), c = NOTE('c'), d = NOTE('d'), e = NOTE('e');
    a.begun = &f->begun;
    a.go = &f->go;
    executor_submit(f->executor, &a.job, &err);
    sem_wait(&f->begun); // it runs, so it waits no longer
    assert_int_equal(executor_submit(f->executor, &b.job, &err), 0);
    assert_int_equal(executor_submit(f->executor, &c.job, &err), 0);
    assert_int_equal(executor_submit(f->executor, &d.job, &err), 0);
    assert_int_equal(executor_submit(f->executor, &e.job, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "3 calls wait for this worker already; call again later");
    sem_post(&f->go);
    turn_until_done(f, 4);
    assert_string_equal(done, "abcd");
    assert_int_equal(executor_submit(f->executor, &e.job, &err), 0); // there is room again
    turn_until_done(f, 5);
}

static void what_waits_can_be_withdrawn_and_what_runs_cannot(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a'), b = NOTE('b'), c = NOTE('c');
    a.begun = &f->begun;
    a.go = &f->go;
    executor_submit(f->executor, &a.job, &err);
    executor_submit(f->executor, &b.job, &err);
    executor_submit(f->executor, &c.job, &err);
    sem_wait(&f->begun);
    assert_false(executor_withdraw(f->executor, &a.job));
    assert_true(executor_withdraw(f->executor, &b.job));
    assert_false(executor_withdraw(f->executor, &b.job)); // once
    sem_post(&f->go);
    turn_until_done(f, 2);
    assert_string_equal(ran, "ac");
    assert_string_equal(done, "ac");
    assert_false(executor_withdraw(f->executor, &c.job));
}

static void the_end_waits_for_what_runs_and_hands_it_back(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a');
    a.begun = &f->begun;
    executor_submit(f->executor, &a.job, &err);
    sem_wait(&f->begun);
    executor_free(f->executor);
    f->executor = NULL;
    assert_string_equal(done, "a");
}

static void lanes_do_not_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a'), b = NOTE('b'), c = NOTE('c');
    a.begun = &f->begun;
    a.go = &f->go;
    b.job.lane = c.job.lane = executor_add_lane(f->executor, 1);
    executor_submit(f->executor, &a.job, &err);
    sem_wait(&f->begun);
    executor_submit(f->executor, &b.job, &err);
    executor_submit(f->executor, &c.job, &err);
    turn_until_done(f, 2);
    assert_string_equal(ran, "bc"); // in order, while a runs
    sem_post(&f->go);
    turn_until_done(f, 3);
}

static void a_lane_runs_as_many_at_a_time_as_it_has_threads(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note notes[] = {NOTE('a'), NOTE('b'), NOTE('c')};
    unsigned lane = executor_add_lane(f->executor, 2);
    for (size_t i = 0; i < 3; i++) {
        notes[i].job.lane = lane;
        notes[i].begun = &f->begun;
        notes[i].go = &f->go;
        executor_submit(f->executor, &notes[i].job, &err);
    }
    sem_wait(&f->begun);
    sem_wait(&f->begun); // two run
    assert_true(executor_withdraw(f->executor, &notes[2].job));
    sem_post(&f->go);
    turn_until_done(f, 1);
    sem_post(&f->go);
    turn_until_done(f, 2);
}

static void what_runs_alone_waits_for_all_lanes(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a'), b = NOTE('b');
    a.begun = &f->begun;
    a.go = &f->go;
    a.job.lane = executor_add_lane(f->executor, 1);
    b.job.alone = true;
    executor_submit(f->executor, &a.job, &err);
    sem_wait(&f->begun);
    executor_submit(f->executor, &b.job, &err);
    sem_post(&f->go);
    turn_until_done(f, 2);
    assert_string_equal(ran, "ab");
}

static struct fixture *chain_fixture;
static struct note *chain_next;

static void run_nothing(struct executor_job *job)
{
    (void)job;
}

static void submit_next(struct executor_job *job)
{
    struct err err = ERR_INIT;
    (void)job;
    assert_int_equal(executor_submit(chain_fixture->executor, &chain_next->job, &err), 0);
}

static void a_finished_job_may_submit_another(void **state)
{
    struct err err = ERR_INIT;
    struct note b = NOTE('b');
    struct executor_job first = {.run = run_nothing, .done = submit_next};
    chain_fixture = *state;
    chain_next = &b;
    executor_submit(chain_fixture->executor, &first, &err);
    turn_until_done(*state, 1);
    assert_string_equal(done, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define EXECUTOR_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        EXECUTOR_TEST(jobs_run_in_order_on_another_thread_and_come_back_to_this_one),
        EXECUTOR_TEST(more_than_may_wait_is_refused),
        EXECUTOR_TEST(what_waits_can_be_withdrawn_and_what_runs_cannot),
        EXECUTOR_TEST(the_end_waits_for_what_runs_and_hands_it_back),
        EXECUTOR_TEST(lanes_do_not_wait_for_each_other),
        EXECUTOR_TEST(a_lane_runs_as_many_at_a_time_as_it_has_threads),
        EXECUTOR_TEST(what_runs_alone_waits_for_all_lanes),
        EXECUTOR_TEST(a_finished_job_may_submit_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
