// SPDX-License-Identifier: Apache-2.0
#include "worker/host/method_executor.h"

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
#include <sys/eventfd.h>

struct note {
    struct executor_job job;
    char letter;
    sem_t *begun, *go; // NULL = the job does not wait
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
    struct method_executor *executor;
    sem_t begun, go;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->executor = method_executor_new(f->loop, 3, false);
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
    method_executor_free(f->executor);
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
    assert_int_equal(method_executor_submit(f->executor, &a.job, &err), 0);
    assert_int_equal(method_executor_submit(f->executor, &b.job, &err), 0);
    assert_int_equal(method_executor_submit(f->executor, &c.job, &err), 0);
    assert_string_equal(done, ""); // `done` is never called inside method_executor_submit()
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
    method_executor_submit(f->executor, &a.job, &err);
    sem_wait(&f->begun); // it runs, so it does not wait any more
    assert_int_equal(method_executor_submit(f->executor, &b.job, &err), 0);
    assert_int_equal(method_executor_submit(f->executor, &c.job, &err), 0);
    assert_int_equal(method_executor_submit(f->executor, &d.job, &err), 0);
    assert_int_equal(method_executor_submit(f->executor, &e.job, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "3 calls wait for this worker already; call again later");
    sem_post(&f->go);
    turn_until_done(f, 4);
    assert_string_equal(done, "abcd");
    assert_int_equal(method_executor_submit(f->executor, &e.job, &err), 0); // there is room again
    turn_until_done(f, 5);
}

static void what_waits_can_be_withdrawn_and_what_runs_cannot(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a'), b = NOTE('b'), c = NOTE('c');
    a.begun = &f->begun;
    a.go = &f->go;
    method_executor_submit(f->executor, &a.job, &err);
    method_executor_submit(f->executor, &b.job, &err);
    method_executor_submit(f->executor, &c.job, &err);
    sem_wait(&f->begun);
    assert_false(method_executor_withdraw(f->executor, &a.job));
    assert_true(method_executor_withdraw(f->executor, &b.job));
    assert_false(method_executor_withdraw(f->executor, &b.job)); // once
    sem_post(&f->go);
    turn_until_done(f, 2);
    assert_string_equal(ran, "ac");
    assert_string_equal(done, "ac");
    assert_false(method_executor_withdraw(f->executor, &c.job));
}

static void the_end_waits_for_what_runs_and_hands_it_back(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a');
    a.begun = &f->begun;
    method_executor_submit(f->executor, &a.job, &err);
    sem_wait(&f->begun);
    method_executor_free(f->executor);
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
    b.job.lane = c.job.lane = method_executor_add_lane(f->executor, 1);
    method_executor_submit(f->executor, &a.job, &err);
    sem_wait(&f->begun);
    method_executor_submit(f->executor, &b.job, &err);
    method_executor_submit(f->executor, &c.job, &err);
    turn_until_done(f, 2);
    assert_string_equal(ran, "bc"); // in order, while job a runs
    sem_post(&f->go);
    turn_until_done(f, 3);
}

static void a_lane_runs_as_many_at_a_time_as_it_has_threads(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note notes[] = {NOTE('a'), NOTE('b'), NOTE('c')};
    unsigned lane = method_executor_add_lane(f->executor, 2);
    for (size_t i = 0; i < 3; i++) {
        notes[i].job.lane = lane;
        notes[i].begun = &f->begun;
        notes[i].go = &f->go;
        method_executor_submit(f->executor, &notes[i].job, &err);
    }
    sem_wait(&f->begun);
    sem_wait(&f->begun); // two run
    assert_true(method_executor_withdraw(f->executor, &notes[2].job));
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
    a.job.lane = method_executor_add_lane(f->executor, 1);
    b.job.alone = true;
    method_executor_submit(f->executor, &a.job, &err);
    sem_wait(&f->begun);
    method_executor_submit(f->executor, &b.job, &err);
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
    assert_int_equal(method_executor_submit(chain_fixture->executor, &chain_next->job, &err), 0);
}

static void a_finished_job_may_submit_another(void **state)
{
    struct err err = ERR_INIT;
    struct note b = NOTE('b');
    struct executor_job first = {.run = run_nothing, .done = submit_next};
    chain_fixture = *state;
    chain_next = &b;
    method_executor_submit(chain_fixture->executor, &first, &err);
    turn_until_done(*state, 1);
    assert_string_equal(done, "b");
}

// The following tests turn the loop with method_executor_turn(), as the host does.

struct chain {
    struct executor_job job;
    struct fixture *f;
    struct loop_timer *timer;
    bool lent; // a job and a callback of the loop ran on the same thread
    void (*then)(struct chain *c);
    pthread_t ran;
};

static void run_link(struct executor_job *job)
{
    CONTAINER_OF(job, struct chain, job)->ran = pthread_self();
}

static void submit(struct chain *c)
{
    struct err err = ERR_INIT;
    assert_int_equal(method_executor_submit(c->f->executor, &c->job, &err), 0);
}

// Submits the job again until the thread that runs it also turns the loop.
static void link_done(struct executor_job *job)
{
    struct chain *c = CONTAINER_OF(job, struct chain, job);
    c->lent = pthread_equal(c->ran, pthread_self());
    if (c->lent)
        c->then(c);
    else
        submit(c);
}

static void turn_chain(struct fixture *f, void (*then)(struct chain *c))
{
    struct chain c = {.job = {.run = run_link, .done = link_done}, .f = f, .then = then};
    submit(&c);
    method_executor_turn(f->executor);
    assert_true(c.lent);
    loop_timer_free(c.timer);
}

static void leave(struct chain *c)
{
    method_executor_leave(c->f->executor);
}

static void brief_jobs_run_on_the_thread_that_turns_the_loop(void **state)
{
    turn_chain(*state, leave);
    turn_chain(*state, leave); // the loop may be turned again
}

static void run_until_told(struct executor_job *job)
{
    sem_wait(&CONTAINER_OF(job, struct chain, job)->f->go);
}

static void run_and_say_that_it_waits(struct executor_job *job)
{
    method_executor_waits();
    run_until_told(job);
}

static void leave_after(struct executor_job *job)
{
    leave(CONTAINER_OF(job, struct chain, job));
}

static void tell(void *ctx)
{
    sem_post(&((struct fixture *)ctx)->go);
}

// The loop's timer lets the job continue. This works only if another thread turns the loop.
static void block(struct chain *c, void (*run)(struct executor_job *job))
{
    c->timer = loop_timer_new(c->f->loop, tell, c->f);
    loop_timer_arm(c->timer, 1);
    c->job.run = run;
    c->job.done = leave_after;
    submit(c);
}

static void block_long(struct chain *c)
{
    block(c, run_until_told);
}

static void block_and_say_so(struct chain *c)
{
    block(c, run_and_say_that_it_waits);
}

static void a_job_that_takes_long_does_not_keep_the_loop(void **state)
{
    turn_chain(*state, block_long);
}

static void a_job_that_waits_for_others_does_not_keep_the_loop(void **state)
{
    turn_chain(*state, block_and_say_so);
}

static struct note beside = NOTE('b');
static struct executor_job last;

static void leave_last(struct executor_job *job)
{
    (void)job;
    assert_string_equal(ran, "b");
    method_executor_leave(chain_fixture->executor);
}

static void run_beside(struct chain *c)
{
    struct err err = ERR_INIT;
    chain_fixture = c->f;
    beside.job.lane = method_executor_add_lane(c->f->executor, 1);
    beside.begun = &c->f->begun;
    beside.go = &c->f->go;
    last = (struct executor_job){.run = run_nothing, .done = leave_last, .alone = true};
    assert_int_equal(method_executor_submit(c->f->executor, &beside.job, &err), 0);
    sem_wait(&c->f->begun);
    assert_int_equal(method_executor_submit(c->f->executor, &last, &err), 0);
    c->timer = loop_timer_new(c->f->loop, tell, c->f);
    loop_timer_arm(c->timer, 1);
}

static void a_lent_loop_waits_with_what_runs_alone(void **state)
{
    turn_chain(*state, run_beside);
    assert_string_equal(done, "b");
}

enum { JOBS = 500 };
static size_t n_jobs_done;

static void one_of_jobs_done(struct executor_job *job)
{
    struct note *n = CONTAINER_OF(job, struct note, job);
    struct err err = ERR_INIT;
    if (++n_jobs_done == JOBS)
        method_executor_leave(chain_fixture->executor);
    else if (n_jobs_done < JOBS - 2) // two other jobs are on the way
        assert_int_equal(method_executor_submit(chain_fixture->executor, &n->job, &err), 0);
}

static void jobs_of_several_lanes_go_on_while_the_loop_is_lent_and_taken_back(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note notes[] = {NOTE('a'), NOTE('b'), NOTE('c')};
    chain_fixture = f;
    n_jobs_done = 0;
    for (size_t i = 0; i < 3; i++) {
        notes[i].job.lane = i == 2 ? method_executor_add_lane(f->executor, 1) : 0;
        notes[i].job.run = run_nothing;
        notes[i].job.done = one_of_jobs_done;
        assert_int_equal(method_executor_submit(f->executor, &notes[i].job, &err), 0);
    }
    method_executor_turn(f->executor);
    assert_int_equal(n_jobs_done, JOBS);
}

// Pulled

static int setup_pulled(void **state)
{
    setup(state);
    struct fixture *f = *state;
    method_executor_free(f->executor);
    f->executor = method_executor_new(f->loop, 3, true);
    return 0;
}

struct elsewhere {
    struct method_executor *executor;
    struct executor_job *job;
};

static void *finish_elsewhere(void *ctx)
{
    struct elsewhere *e = ctx;
    method_executor_finish(e->executor, e->job);
    return NULL;
}

static void pulled_jobs_come_in_order_and_are_finished_from_any_thread(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a'), b = NOTE('b'), own = NOTE('o');
    struct executor_job *first = NULL, *second = NULL, *none = NULL;
    struct elsewhere other = {f->executor, &a.job};
    pthread_t thread;
    a.job.pulled = b.job.pulled = true;
    assert_int_equal(method_executor_pull(f->executor, 0, false, &none), EXECUTOR_NONE);
    method_executor_submit(f->executor, &own.job,
                           &err); // this job has a function: method_executor_pull() runs it itself
    method_executor_submit(f->executor, &a.job, &err);
    method_executor_submit(f->executor, &b.job, &err);
    assert_int_equal(method_executor_pull(f->executor, 0, true, &first), EXECUTOR_JOB);
    assert_int_equal(method_executor_pull(f->executor, 0, true, &second), EXECUTOR_JOB);
    assert_ptr_equal(first, &a.job);
    assert_ptr_equal(second, &b.job);
    assert_string_equal(ran, "o");
    method_executor_finish(f->executor, second);
    pthread_create(&thread, NULL, finish_elsewhere, &other);
    turn_until_done(f, 3);
    pthread_join(thread, NULL);
    assert_string_equal(done, "oba");
}

static void who_pulls_can_be_woken_and_is_told_of_the_end(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct note a = NOTE('a');
    struct executor_job *job = NULL;
    eventfd_t count = 0;
    unsigned lane = method_executor_add_lane(f->executor, 1);
    int fd = method_executor_lane_fd(f->executor, lane);
    assert_int_equal(fd, method_executor_lane_fd(f->executor, lane));
    assert_int_equal(eventfd_read(fd, &count), -1);
    method_executor_wake(f->executor);
    assert_int_equal(method_executor_pull(f->executor, lane, false, &job), EXECUTOR_NONE); // it is not the one to wake
    assert_int_equal(method_executor_pull(f->executor, 0, true, &job), EXECUTOR_NONE);
    a.job.pulled = true;
    a.job.lane = lane;
    method_executor_submit(f->executor, &a.job, &err);
    assert_int_equal(eventfd_read(fd, &count), 0);
    assert_int_equal(method_executor_pull(f->executor, lane, false, &job), EXECUTOR_JOB);
    assert_int_equal(method_executor_pull(f->executor, lane, false, &job), EXECUTOR_NONE);
    method_executor_finish(f->executor, &a.job);
    method_executor_stop(f->executor);
    assert_int_equal(eventfd_read(fd, &count), 0);
    assert_int_equal(method_executor_pull(f->executor, lane, true, &job), EXECUTOR_STOPPED);
    assert_int_equal(method_executor_pull(f->executor, 0, true, &job), EXECUTOR_STOPPED);
    turn_until_done(f, 1);
}

struct away {
    struct fixture *f;
    struct note *note;
    sem_t turned;
};

static void submit_it(void *ctx)
{
    struct away *w = ctx;
    struct err err = ERR_INIT;
    method_executor_submit(w->f->executor, &w->note->job, &err);
}

static void say_turned(void *ctx)
{
    struct away *w = ctx;
    sem_post(&w->turned);
}

static void leave_turning(void *ctx)
{
    struct away *w = ctx;
    method_executor_leave(w->f->executor);
}

static void *turn(void *ctx)
{
    struct away *w = ctx;
    method_executor_turn(w->f->executor);
    return NULL;
}

static void a_loop_that_was_lent_to_who_pulls_turns_on_while_that_thread_is_away(void **state)
{
    enum { BRIEF_JOBS = 50 };
    struct away w = {.f = *state};
    static struct note notes[BRIEF_JOBS]; // the last jobs may be done when the executor is freed
    struct loop_wakeup *submit = loop_wakeup_new(w.f->loop, submit_it, &w);
    struct loop_wakeup *ask = loop_wakeup_new(w.f->loop, say_turned, &w);
    struct loop_wakeup *end = loop_wakeup_new(w.f->loop, leave_turning, &w);
    struct executor_job *job = NULL;
    pthread_t thread;
    sem_init(&w.turned, 0, 0);
    pthread_create(&thread, NULL, turn, &w);
    for (int i = 0; i < BRIEF_JOBS; i++) { // so many brief jobs make the executor lend the loop
        notes[i] = (struct note)NOTE('a');
        notes[i].job.pulled = true;
        w.note = &notes[i];
        loop_wakeup_signal(submit);
        assert_int_equal(method_executor_pull(w.f->executor, 0, true, &job), EXECUTOR_JOB);
        method_executor_finish(w.f->executor, job);
        loop_wakeup_signal(ask);
        sem_wait(&w.turned); // the thread is away: nobody pulls
    }
    loop_wakeup_signal(end);
    pthread_join(thread, NULL);
    loop_wakeup_free(submit);
    loop_wakeup_free(ask);
    loop_wakeup_free(end);
    sem_destroy(&w.turned);
}

#define PULLED_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_pulled, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PULLED_TEST(pulled_jobs_come_in_order_and_are_finished_from_any_thread),
        PULLED_TEST(who_pulls_can_be_woken_and_is_told_of_the_end),
        PULLED_TEST(a_loop_that_was_lent_to_who_pulls_turns_on_while_that_thread_is_away),
#define EXECUTOR_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        EXECUTOR_TEST(jobs_run_in_order_on_another_thread_and_come_back_to_this_one),
        EXECUTOR_TEST(more_than_may_wait_is_refused),
        EXECUTOR_TEST(what_waits_can_be_withdrawn_and_what_runs_cannot),
        EXECUTOR_TEST(the_end_waits_for_what_runs_and_hands_it_back),
        EXECUTOR_TEST(lanes_do_not_wait_for_each_other),
        EXECUTOR_TEST(a_lane_runs_as_many_at_a_time_as_it_has_threads),
        EXECUTOR_TEST(what_runs_alone_waits_for_all_lanes),
        EXECUTOR_TEST(a_finished_job_may_submit_another),
        EXECUTOR_TEST(brief_jobs_run_on_the_thread_that_turns_the_loop),
        EXECUTOR_TEST(a_job_that_takes_long_does_not_keep_the_loop),
        EXECUTOR_TEST(a_job_that_waits_for_others_does_not_keep_the_loop),
        EXECUTOR_TEST(a_lent_loop_waits_with_what_runs_alone),
        EXECUTOR_TEST(jobs_of_several_lanes_go_on_while_the_loop_is_lent_and_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
