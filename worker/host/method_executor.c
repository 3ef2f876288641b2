// SPDX-License-Identifier: Apache-2.0
#include "worker/host/method_executor.h"

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/file.h"
#include "common/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    BRIEF_US = 300,  // if a job of lane 0 took no longer, the next ones may run on the thread that turns the loop
    TURN_US = 200,   // jobs run there for this time before the loop is turned
    WATCH_US = 2000, // how often the first thread checks that the other one still turns the loop
};

struct lane {
    struct method_executor *executor;
    struct list waiting;
    pthread_cond_t work;                     // a job waits that may begin, or the executor stops
    pthread_t threads[EXECUTOR_THREADS_MAX]; // if the executor is pulled: [0] is the thread that pulls lane 0
    unsigned n_threads;                      // if the executor is pulled: how many may pull
    int fd;                                  // -1 = none
};

struct method_executor {
    struct loop *loop;
    struct loop_wakeup *wakeup;
    size_t max;
    bool pulled;
    // For the thread that has the lent loop: when it last turned the loop, and when it last read the clock; 0 = not
    // since it has the loop. in_loop: it turns the loop until there is a job.
    int64_t turned_us, looked_us;
    bool in_loop;

    pthread_mutex_t mutex; // of all members below, of the lanes, and of link and `waits` of the jobs
    struct lane *lanes[EXECUTOR_LANES_MAX];
    unsigned n_lanes;
    struct list finished;
    size_t n_waiting, n_running;
    size_t n_pulling;       // threads in method_executor_pull()
    bool woken;             // method_executor_wake() was called: the thread that pulls lane 0 has to return
    pthread_cond_t outside; // no thread pulls any more
    bool stop;
    bool turning, leaving;  // turning: method_executor_turn() runs; leaving: it has to return
    bool lent;              // the thread of lane 0 has the loop
    bool brief;             // the last job of lane 0 was brief
    uint64_t begun;         // how many jobs of lane 0 have begun
    bool busy;              // one of them runs, or the thread that pulls them is elsewhere
    int64_t began_us;       // when the job began, 0 = it is not timed
    bool dozes;             // the first thread sleeps without a limit, because the loop is lent and nothing happens
    pthread_cond_t changed; // wakes the first thread while the loop is lent
};

static _Thread_local struct method_executor *here; // the executor whose job this thread runs

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
    struct method_executor *e = lane->executor;
    if (!may_begin(lane))
        return NULL;
    struct executor_job *job = job_of(list_pop(&lane->waiting));
    job->waits = false;
    e->n_waiting--;
    e->n_running++;
    return job;
}

// Calls `done` of the jobs that were run.
static void deliver(void *ctx)
{
    struct method_executor *e = ctx;
    struct list batch = LIST_INIT(batch);
    pthread_mutex_lock(&e->mutex);
    list_splice(&batch, &e->finished);
    if (e->lent ? e->in_loop && may_begin(e->lanes[0]) : e->turning && e->brief)
        loop_stop(e->loop); // this thread has a job to run, or the loop is to be lent
    pthread_mutex_unlock(&e->mutex);
    for (struct list *l; (l = list_pop(&batch));)
        job_of(l)->done(job_of(l));
}

static void note_begin(struct method_executor *e)
{
    e->begun++;
    e->busy = true;
    if (e->dozes) {
        e->dozes = false;
        pthread_cond_signal(&e->changed);
    }
}

// Call this with the mutex after a job was run. Returns true if the loop must be woken.
static bool job_over(struct lane *lane, struct executor_job *job)
{
    struct method_executor *e = lane->executor;
    bool first_lane = lane == e->lanes[0];
    e->n_running--;
    if (!first_lane && e->n_running == 0)
        pthread_cond_signal(&e->lanes[0]->work);                      // for a job that runs alone
    bool told = !list_empty(&e->finished) || (first_lane && e->lent); // the loop knows already, or this thread turns it
    list_append(&e->finished, &job->link);
    return !told;
}

// Call this with the mutex.
static void start_timing(struct lane *lane)
{
    struct method_executor *e = lane->executor;
    if (lane == e->lanes[0])
        e->began_us = e->turning && !e->lent ? clock_mono_us(&clock_system) : 0;
}

// Call this with the mutex.
static void end_timing(struct lane *lane)
{
    struct method_executor *e = lane->executor;
    if (lane != e->lanes[0])
        return;
    if (e->began_us)
        e->brief = clock_mono_us(&clock_system) - e->began_us <= BRIEF_US;
}

// Call this with the mutex. It is unlocked while the job runs.
static void run_job(struct lane *lane, struct executor_job *job)
{
    struct method_executor *e = lane->executor;
    start_timing(lane);
    if (lane == e->lanes[0])
        note_begin(e);
    pthread_mutex_unlock(&e->mutex);
    here = e;
    job->run(job);
    here = NULL;
    pthread_mutex_lock(&e->mutex);
    end_timing(lane);
    if (lane == e->lanes[0])
        e->busy = false;
    if (!job_over(lane, job))
        return;
    pthread_mutex_unlock(&e->mutex); // the loop needs the mutex
    loop_wakeup_signal(e->wakeup);
    pthread_mutex_lock(&e->mutex);
}

// Turns the loop that was lent to this thread once, quickly if a job waits. Call this with the mutex. It is unlocked
// meanwhile.
static void turn_lent(struct method_executor *e)
{
    pthread_mutex_unlock(&e->mutex);
    deliver(e);
    pthread_mutex_lock(&e->mutex);
    e->in_loop = !may_begin(e->lanes[0]) && !e->woken;
    pthread_mutex_unlock(&e->mutex);
    if (e->in_loop)
        loop_run(e->loop); // returns when a job is submitted
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

// The first thread turns the loop again, and gets the jobs that were run.
static void give_back(struct method_executor *e)
{
    e->lent = e->brief = false;
    pthread_cond_signal(&e->changed);
}

// Call this with the mutex, after a job or a turn, while the loop is lent. Gives the loop back if the job was not
// brief. Returns true if the loop must be turned.
static bool turn_is_due(struct method_executor *e)
{
    int64_t now = clock_mono_us(&clock_system), looked = e->looked_us;
    e->looked_us = now;
    if (looked && now - looked > BRIEF_US)
        give_back(e);
    return e->lent && now - e->turned_us > TURN_US;
}

// Runs jobs of the lane until the executor stops, or until a job that its caller runs (`pulled`), or until no job waits
// and `wait` is false. Call this with the mutex. It is unlocked meanwhile.
static enum executor_pulled pull(struct lane *lane, bool wait, struct executor_job **ret)
{
    struct method_executor *e = lane->executor;
    bool first = lane == e->lanes[0];
    while (!e->stop) {
        struct executor_job *job;
        if (first && e->lent && turn_is_due(e)) {
            turn_lent(e);
        } else if ((job = take_job(lane))) {
            if (job->pulled) {
                start_timing(lane);
                *ret = job;
                return EXECUTOR_JOB;
            }
            run_job(lane, job);
        } else if ((first && e->woken) || !wait) {
            if (first) // nobody else is meant
                e->woken = false;
            return EXECUTOR_NONE;
        } else if (first && e->lent) {
            turn_lent(e);
        } else {
            pthread_cond_wait(&lane->work, &e->mutex);
        }
    }
    return EXECUTOR_STOPPED;
}

static void *lane_thread(void *ctx)
{
    struct lane *lane = ctx;
    struct method_executor *e = lane->executor;
    struct executor_job *none;
    pthread_mutex_lock(&e->mutex);
    (void)pull(lane, true, &none); // runs all jobs of the lane: nobody pulls them
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

struct method_executor *method_executor_new(struct loop *loop, size_t max, bool pulled)
{
    struct method_executor *e = xcalloc(1, sizeof *e);
    e->loop = loop;
    e->max = max;
    e->pulled = pulled;
    list_init(&e->finished);
    pthread_mutex_init(&e->mutex, NULL);
    cond_init(&e->changed);
    pthread_cond_init(&e->outside, NULL);
    e->wakeup = loop_wakeup_new(loop, deliver, e);
    method_executor_add_lane(e, 1);
    return e;
}

unsigned method_executor_add_lane(struct method_executor *e, unsigned n_threads)
{
    struct lane *lane = xcalloc(1, sizeof *lane);
    assert(e->n_lanes < EXECUTOR_LANES_MAX && n_threads <= EXECUTOR_THREADS_MAX);
    lane->executor = e;
    lane->fd = -1;
    list_init(&lane->waiting);
    pthread_cond_init(&lane->work, NULL);
    pthread_mutex_lock(&e->mutex);
    e->lanes[e->n_lanes++] = lane;
    for (; lane->n_threads < n_threads; lane->n_threads++)
        if (!e->pulled && pthread_create(&lane->threads[lane->n_threads], NULL, lane_thread, lane) != 0)
            abort(); // without a thread nothing can run
    pthread_mutex_unlock(&e->mutex);
    return e->n_lanes - 1;
}

unsigned method_executor_lane_size(const struct method_executor *e, unsigned lane)
{
    return e->lanes[lane]->n_threads;
}

static void lane_free(struct lane *lane)
{
    for (unsigned i = 0; i < lane->n_threads && !lane->executor->pulled; i++)
        pthread_join(lane->threads[i], NULL);
    file_close(&lane->fd);
    pthread_cond_destroy(&lane->work);
    free(lane);
}

void method_executor_free(struct method_executor *e)
{
    if (!e)
        return;
    method_executor_stop(e);
    pthread_mutex_lock(&e->mutex);
    assert(e->n_waiting == 0);
    while (e->n_pulling)
        pthread_cond_wait(&e->outside, &e->mutex);
    pthread_mutex_unlock(&e->mutex);
    for (unsigned i = e->n_lanes; i-- > 0;) // the first lane comes last, because the others tell it of their end
        lane_free(e->lanes[i]);
    deliver(e);
    loop_wakeup_free(e->wakeup);
    pthread_cond_destroy(&e->changed);
    pthread_cond_destroy(&e->outside);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

// Turning

// The first thread waits here while the loop is lent. It takes the loop back when a job takes long. Call this with the
// mutex.
static void watch(struct method_executor *e)
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

void method_executor_turn(struct method_executor *e)
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

void method_executor_leave(struct method_executor *e)
{
    pthread_mutex_lock(&e->mutex);
    e->leaving = e->turning;
    pthread_mutex_unlock(&e->mutex);
    loop_stop(e->loop);
}

void method_executor_waits(void)
{
    struct method_executor *e = here;
    if (!e)
        return;
    pthread_mutex_lock(&e->mutex);
    if (e->lent && pthread_equal(pthread_self(), e->lanes[0]->threads[0]))
        give_back(e);
    pthread_mutex_unlock(&e->mutex);
}

int method_executor_submit(struct method_executor *e, struct executor_job *job, struct err *err)
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
    int fd = room ? lane->fd : -1;
    pthread_mutex_unlock(&e->mutex);
    if (fd >= 0)
        eventfd_write(fd, 1);
    if (here_next && e->in_loop)
        loop_stop(e->loop); // this thread runs the job after the turn
    if (room && !here_next)
        pthread_cond_signal(&lane->work); // after the unlock, so that the thread does not wait for the mutex
    return room ? 0 : err_set(err, ERR_LIMIT, "%zu calls wait for this worker already; call again later", e->max);
}

bool method_executor_withdraw(struct method_executor *e, struct executor_job *job)
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

// Pulling

enum executor_pulled method_executor_pull(struct method_executor *e, unsigned lane, bool wait,
                                          struct executor_job **ret)
{
    pthread_mutex_lock(&e->mutex);
    if (lane >= e->n_lanes) {
        pthread_mutex_unlock(&e->mutex);
        return EXECUTOR_STOPPED;
    }
    if (lane == 0) {
        e->lanes[0]->threads[0] = pthread_self();
        e->busy = false;
    }
    e->n_pulling++;
    enum executor_pulled pulled = pull(e->lanes[lane], wait, ret);
    if (lane == 0)
        note_begin(e); // if this thread stays away, the lent loop is taken back
    if (--e->n_pulling == 0)
        pthread_cond_signal(&e->outside);
    if (pulled == EXECUTOR_JOB)
        here = e;
    pthread_mutex_unlock(&e->mutex);
    return pulled;
}

void method_executor_finish(struct method_executor *e, struct executor_job *job)
{
    struct lane *lane = e->lanes[job->lane];
    here = NULL;
    pthread_mutex_lock(&e->mutex);
    end_timing(lane);
    bool tell = job_over(lane, job);
    pthread_mutex_unlock(&e->mutex);
    if (tell)
        loop_wakeup_signal(e->wakeup);
}

void method_executor_wake(struct method_executor *e)
{
    pthread_mutex_lock(&e->mutex);
    e->woken = true;
    bool in_loop = e->lent && e->in_loop;
    pthread_cond_signal(&e->lanes[0]->work);
    pthread_mutex_unlock(&e->mutex);
    if (in_loop)
        loop_stop(e->loop); // the thread that pulls lane 0 turns the loop: it is this thread
}

int method_executor_lane_fd(struct method_executor *e, unsigned lane)
{
    pthread_mutex_lock(&e->mutex);
    struct lane *l = lane < e->n_lanes ? e->lanes[lane] : NULL;
    if (l && l->fd < 0 && (l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0 && (may_begin(l) || e->stop))
        eventfd_write(l->fd, 1);
    int fd = l ? l->fd : -1;
    pthread_mutex_unlock(&e->mutex);
    return fd;
}

void method_executor_stop(struct method_executor *e)
{
    pthread_mutex_lock(&e->mutex);
    e->stop = true;
    for (unsigned i = 0; i < e->n_lanes; i++) {
        pthread_cond_broadcast(&e->lanes[i]->work);
        if (e->lanes[i]->fd >= 0)
            eventfd_write(e->lanes[i]->fd, 1);
    }
    pthread_mutex_unlock(&e->mutex);
}
