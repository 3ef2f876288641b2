// SPDX-License-Identifier: Apache-2.0
#include "worker/host/executor.h"

#include "common/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct lane {
    struct executor *executor;
    struct list waiting;
    pthread_cond_t work; // something waits that may begin, or the end has come
    pthread_t threads[EXECUTOR_THREADS_MAX];
    unsigned n_threads;
};

struct executor {
    struct loop_wakeup *wakeup;
    size_t max;

    pthread_mutex_t mutex; // of all that follows, of the lanes, and of link and `waits` of the jobs
    struct lane *lanes[EXECUTOR_LANES_MAX];
    unsigned n_lanes;
    struct list finished;
    size_t n_waiting, n_running;
    bool stop;
};

static struct executor_job *job_of(struct list *l)
{
    return CONTAINER_OF(l, struct executor_job, link);
}

static struct executor_job *take_job(struct lane *lane)
{
    struct executor *e = lane->executor;
    if (list_empty(&lane->waiting) || (job_of(lane->waiting.next)->alone && e->n_running))
        return NULL;
    struct executor_job *job = job_of(list_pop(&lane->waiting));
    job->waits = false;
    e->n_waiting--;
    e->n_running++;
    return job;
}

static void *lane_thread(void *ctx)
{
    struct lane *lane = ctx;
    struct executor *e = lane->executor;
    struct executor_job *job = NULL;
    pthread_mutex_lock(&e->mutex);
    for (;;) {
        while (!e->stop && !(job = take_job(lane)))
            pthread_cond_wait(&lane->work, &e->mutex);
        if (e->stop)
            break;
        pthread_mutex_unlock(&e->mutex);
        job->run(job);
        pthread_mutex_lock(&e->mutex);
        if (--e->n_running == 0 && lane != e->lanes[0])
            pthread_cond_signal(&e->lanes[0]->work); // for one that runs alone
        bool first = list_empty(&e->finished);       // else the loop is told already
        list_append(&e->finished, &job->link);
        if (!first)
            continue;
        pthread_mutex_unlock(&e->mutex); // which the loop is about to take
        loop_wakeup_signal(e->wakeup);
        pthread_mutex_lock(&e->mutex);
    }
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

static void deliver(void *ctx)
{
    struct executor *e = ctx;
    struct list batch = LIST_INIT(batch);
    pthread_mutex_lock(&e->mutex);
    for (struct list *l; (l = list_pop(&e->finished));)
        list_append(&batch, l);
    pthread_mutex_unlock(&e->mutex);
    for (struct list *l; (l = list_pop(&batch));)
        job_of(l)->done(job_of(l));
}

struct executor *executor_new(struct loop *loop, size_t max)
{
    struct executor *e = xcalloc(1, sizeof *e);
    e->max = max;
    list_init(&e->finished);
    pthread_mutex_init(&e->mutex, NULL);
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
    pthread_mutex_destroy(&e->mutex);
    free(e);
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
    pthread_mutex_unlock(&e->mutex);
    if (room)
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
