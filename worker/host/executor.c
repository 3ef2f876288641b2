// SPDX-License-Identifier: Apache-2.0
#include "worker/host/executor.h"

#include "common/base/clock.h"
#include "common/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    BRIEF_US = 300,  // a job of lane 0 that took no longer: the next ones may run on the thread that turns the loop
    TURN_US = 200,   // so long jobs run there one after the other before the loop is turned
    WATCH_US = 2000, // how often the first thread looks whether the other one still turns
};

struct lane {
    struct executor *executor;
    struct list waiting;
    pthread_cond_t work; // something waits that may begin, or the end has come
    pthread_t threads[EXECUTOR_THREADS_MAX];
    unsigned n_threads;
};

struct executor {
    struct loop *loop;
    struct loop_wakeup *wakeup;
    size_t max;
    // Of the thread that the loop is lent to: when it last turned it, and last looked at the clock; 0 = not since it
    // has the loop. in_loop: it turns it until there is a job.
    int64_t turned_us, looked_us;
    bool in_loop;

    pthread_mutex_t mutex; // of all that follows, of the lanes, and of link and `waits` of the jobs
    struct lane *lanes[EXECUTOR_LANES_MAX];
    unsigned n_lanes;
    struct list finished;
    size_t n_waiting, n_running;
    bool stop;
    bool turning, leaving;  // in executor_turn(), and out of it
    bool lent;              // the loop, to the thread of lane 0
    bool brief;             // the last job of lane 0 was
    uint64_t begun;         // jobs of lane 0
    bool busy;              // one of them runs
    bool dozes;             // the first thread, while the loop is lent and nothing happens
    pthread_cond_t changed; // for the first thread while the loop is lent
};

static _Thread_local struct executor *here; // the executor whose job this thread runs

static struct executor_job *job_of(struct list *l)
{
    return CONTAINER_OF(l, struct executor_job, link);
}

static bool may_begin(const struct lane *lane)
{
    return !list_empty(&lane->waiting) && !(job_of(lane->waiting.next)->alone && lane->executor->n_running);
}

static struct executor_job *take_job(struct lane *lane)
{
    struct executor *e = lane->executor;
    if (!may_begin(lane))
        return NULL;
    struct executor_job *job = job_of(list_pop(&lane->waiting));
    job->waits = false;
    e->n_waiting--;
    e->n_running++;
    return job;
}

// Those that were run come back.
static void deliver(void *ctx)
{
    struct executor *e = ctx;
    struct list batch = LIST_INIT(batch);
    pthread_mutex_lock(&e->mutex);
    for (struct list *l; (l = list_pop(&e->finished));)
        list_append(&batch, l);
    if (e->lent ? e->in_loop && may_begin(e->lanes[0]) : e->turning && e->brief)
        loop_stop(e->loop); // something to be run by this thread; or it is to be lent
    pthread_mutex_unlock(&e->mutex);
    for (struct list *l; (l = list_pop(&batch));)
        job_of(l)->done(job_of(l));
}

static void note_begin(struct executor *e)
{
    e->begun++;
    e->busy = true;
    if (e->dozes) {
        e->dozes = false;
        pthread_cond_signal(&e->changed);
    }
}

// With the mutex, which is let go of meanwhile.
static void run_job(struct lane *lane, struct executor_job *job)
{
    struct executor *e = lane->executor;
    bool first_lane = lane == e->lanes[0], timed = first_lane && e->turning && !e->lent;
    if (first_lane)
        note_begin(e);
    pthread_mutex_unlock(&e->mutex);
    int64_t began = timed ? clock_mono_us(&clock_system) : 0;
    here = e;
    job->run(job);
    here = NULL;
    bool brief = timed && clock_mono_us(&clock_system) - began <= BRIEF_US;
    pthread_mutex_lock(&e->mutex);
    e->n_running--;
    if (first_lane) {
        e->busy = false;
        e->brief = timed ? brief : e->brief;
    } else if (e->n_running == 0) {
        pthread_cond_signal(&e->lanes[0]->work); // for one that runs alone
    }
    bool told = !list_empty(&e->finished) || (first_lane && e->lent); // the loop, or it is this thread's to turn
    list_append(&e->finished, &job->link);
    if (told)
        return;
    pthread_mutex_unlock(&e->mutex); // which the loop is about to take
    loop_wakeup_signal(e->wakeup);
    pthread_mutex_lock(&e->mutex);
}

// A turn of the loop that was lent to this thread; a quick one if a job waits. With the mutex, which is let go of
// meanwhile.
static void turn_lent(struct executor *e)
{
    pthread_mutex_unlock(&e->mutex);
    deliver(e);
    pthread_mutex_lock(&e->mutex);
    e->in_loop = !may_begin(e->lanes[0]);
    pthread_mutex_unlock(&e->mutex);
    if (e->in_loop)
        loop_run(e->loop); // until a job is submitted
    else
        loop_run_once(e->loop, 0);
    e->in_loop = false;
    e->turned_us = e->looked_us = clock_mono_us(&clock_system);
    pthread_mutex_lock(&e->mutex);
    if (e->leaving) {
        e->lent = false;
        pthread_cond_signal(&e->changed);
    }
}

// The first thread goes on turning it, and what has been run comes back there.
static void give_back(struct executor *e)
{
    e->lent = e->brief = false;
    pthread_cond_signal(&e->changed);
}

// With the mutex, of a loop that was lent, after a job or a turn. Gives it back where the job was not brief.
static bool turn_is_due(struct executor *e)
{
    int64_t now = clock_mono_us(&clock_system), looked = e->looked_us;
    e->looked_us = now;
    if (looked && now - looked > BRIEF_US)
        give_back(e);
    return e->lent && now - e->turned_us > TURN_US;
}

static void *lane_thread(void *ctx)
{
    struct lane *lane = ctx;
    struct executor *e = lane->executor;
    bool first = lane == e->lanes[0];
    pthread_mutex_lock(&e->mutex);
    while (!e->stop) {
        struct executor_job *job;
        if (first && e->lent && turn_is_due(e))
            turn_lent(e);
        else if ((job = take_job(lane)))
            run_job(lane, job);
        else if (first && e->lent)
            turn_lent(e);
        else
            pthread_cond_wait(&lane->work, &e->mutex);
    }
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

static void changed_init(pthread_cond_t *changed)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &attr);
    pthread_condattr_destroy(&attr);
}

struct executor *executor_new(struct loop *loop, size_t max)
{
    struct executor *e = xcalloc(1, sizeof *e);
    e->loop = loop;
    e->max = max;
    list_init(&e->finished);
    pthread_mutex_init(&e->mutex, NULL);
    changed_init(&e->changed);
    e->wakeup = loop_wakeup_new(loop, deliver, e);
    executor_add_lane(e, 1);
    return e;
}

unsigned executor_add_lane(struct executor *e, unsigned n_threads)
{
    struct lane *lane = xcalloc(1, sizeof *lane);
    assert(e->n_lanes < EXECUTOR_LANES_MAX && n_threads <= EXECUTOR_THREADS_MAX);
    lane->executor = e;
    list_init(&lane->waiting);
    pthread_cond_init(&lane->work, NULL);
    pthread_mutex_lock(&e->mutex);
    e->lanes[e->n_lanes++] = lane;
    for (; lane->n_threads < n_threads; lane->n_threads++)
        if (pthread_create(&lane->threads[lane->n_threads], NULL, lane_thread, lane) != 0)
            abort(); // no thread: nothing can run
    pthread_mutex_unlock(&e->mutex);
    return e->n_lanes - 1;
}

unsigned executor_lane_size(const struct executor *e, unsigned lane)
{
    return e->lanes[lane]->n_threads;
}

static void lane_free(struct lane *lane)
{
    for (unsigned i = 0; i < lane->n_threads; i++)
        pthread_join(lane->threads[i], NULL);
    pthread_cond_destroy(&lane->work);
    free(lane);
}

void executor_free(struct executor *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->mutex);
    assert(e->n_waiting == 0);
    e->stop = true;
    for (unsigned i = 0; i < e->n_lanes; i++)
        pthread_cond_broadcast(&e->lanes[i]->work);
    pthread_mutex_unlock(&e->mutex);
    for (unsigned i = e->n_lanes; i-- > 0;) // the first one, which others tell of their end, as the last
        lane_free(e->lanes[i]);
    deliver(e);
    loop_wakeup_free(e->wakeup);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

// Turning

// The first thread's part while the loop is lent: to take it back when a job takes long. With the mutex.
static void watch(struct executor *e)
{
    uint64_t begun = e->begun;
    bool busy = e->busy;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + WATCH_US * INT64_C(1000);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_cond_timedwait(&e->changed, &e->mutex, &until);
    if (!e->lent)
        return;
    if (busy && e->busy && begun == e->begun) {
        e->lent = e->brief = false;
        return;
    }
    e->dozes = !e->busy && begun == e->begun;
    while (e->dozes && e->lent)
        pthread_cond_wait(&e->changed, &e->mutex);
    e->dozes = false;
}

void executor_turn(struct executor *e)
{
    pthread_mutex_lock(&e->mutex);
    e->turning = true;
    while (!e->leaving) {
        if (e->brief) {
            e->lent = true;
            e->turned_us = e->looked_us = 0;
            pthread_cond_signal(&e->lanes[0]->work);
            while (e->lent)
                watch(e);
            continue;
        }
        pthread_mutex_unlock(&e->mutex);
        deliver(e);
        loop_run(e->loop);
        pthread_mutex_lock(&e->mutex);
    }
    e->turning = e->leaving = false;
    pthread_mutex_unlock(&e->mutex);
}

void executor_leave(struct executor *e)
{
    pthread_mutex_lock(&e->mutex);
    e->leaving = e->turning;
    pthread_mutex_unlock(&e->mutex);
    loop_stop(e->loop);
}

void executor_waits(void)
{
    struct executor *e = here;
    if (!e)
        return;
    pthread_mutex_lock(&e->mutex);
    if (e->lent && pthread_equal(pthread_self(), e->lanes[0]->threads[0]))
        give_back(e);
    pthread_mutex_unlock(&e->mutex);
}

int executor_submit(struct executor *e, struct executor_job *job, struct err *err)
{
    struct lane *lane = e->lanes[job->lane];
    pthread_mutex_lock(&e->mutex);
    bool room = e->n_waiting < e->max;
    if (room) {
        list_append(&lane->waiting, &job->link);
        job->waits = true;
        e->n_waiting++;
    }
    bool here_next = room && e->lent && lane == e->lanes[0];
    pthread_mutex_unlock(&e->mutex);
    if (here_next && e->in_loop)
        loop_stop(e->loop); // this thread runs it after the turn
    if (room && !here_next)
        pthread_cond_signal(&lane->work); // not before: it would wake up to wait for the mutex
    return room ? 0 : err_set(err, ERR_LIMIT, "%zu calls wait for this worker already; call again later", e->max);
}

bool executor_withdraw(struct executor *e, struct executor_job *job)
{
    pthread_mutex_lock(&e->mutex);
    bool waits = job->waits;
    if (waits) {
        list_remove(&job->link);
        job->waits = false;
        e->n_waiting--;
    }
    pthread_mutex_unlock(&e->mutex);
    return waits;
}
