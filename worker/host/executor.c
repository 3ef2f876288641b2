// SPDX-License-Identifier: Apache-2.0
#include "worker/host/executor.h"

#include "common/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct executor {
    pthread_t thread;
    struct loop_wakeup *wakeup;
    size_t max;

    pthread_mutex_t mutex; // of all that follows, and of link and `waits` of the jobs
    pthread_cond_t work;   // something waits, or the end has come
    struct list waiting, finished;
    size_t n_waiting;
    bool stop;
};

static struct executor_job *job_of(struct list *l)
{
    return CONTAINER_OF(l, struct executor_job, link);
}

static void *executor_thread(void *ctx)
{
    struct executor *e = ctx;
    pthread_mutex_lock(&e->mutex);
    for (;;) {
        while (!e->stop && list_empty(&e->waiting))
            pthread_cond_wait(&e->work, &e->mutex);
        if (e->stop)
            break;
        struct executor_job *job = job_of(list_pop(&e->waiting));
        job->waits = false;
        e->n_waiting--;
        pthread_mutex_unlock(&e->mutex);
        job->run(job);
        pthread_mutex_lock(&e->mutex);
        bool first = list_empty(&e->finished); // else the loop is told already
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
    list_init(&e->waiting);
    list_init(&e->finished);
    pthread_mutex_init(&e->mutex, NULL);
    pthread_cond_init(&e->work, NULL);
    e->wakeup = loop_wakeup_new(loop, deliver, e);
    if (pthread_create(&e->thread, NULL, executor_thread, e) != 0)
        abort(); // no thread: nothing can run
    return e;
}

void executor_free(struct executor *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->mutex);
    assert(list_empty(&e->waiting));
    e->stop = true;
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->mutex);
    pthread_join(e->thread, NULL);
    deliver(e);
    loop_wakeup_free(e->wakeup);
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

int executor_submit(struct executor *e, struct executor_job *job, struct err *err)
{
    pthread_mutex_lock(&e->mutex);
    bool room = e->n_waiting < e->max;
    if (room) {
        list_append(&e->waiting, &job->link);
        job->waits = true;
        e->n_waiting++;
    }
    pthread_mutex_unlock(&e->mutex);
    if (room)
        pthread_cond_signal(&e->work); // not before: it would wake up to wait for the mutex
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
