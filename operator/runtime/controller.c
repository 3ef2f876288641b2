// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/controller.h"

#include "common/base/mem.h"
#include "operator/runtime/workqueue.h"

#include <stdlib.h>

enum { DEFAULT_CONCURRENT = 64 };

enum outcome { OUTCOME_SUCCESS, OUTCOME_ERROR, OUTCOME_REQUEUE, OUTCOME_REQUEUE_AFTER, OUTCOME_COUNT };

struct controller_metrics { // all NULL if there is no registry
    struct metric *outcomes[OUTCOME_COUNT];
    struct metric *errors, *reconcile_time, *active;
    struct metric *depth, *adds, *retries, *queue_time, *work_time, *unfinished, *longest;
};

struct controller {
    struct controller_options options;
    struct workqueue *queue;
    struct loop_timer *timer; // armed only while a key is ready or delayed
    struct controller_metrics metrics;
    bool running;
    int in_progress;
};

// The histograms of controller-runtime and of client-go's work queue.
static const double reconcile_buckets[] = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75,  2.0,  2.5,   3.0,  3.5, 4.0,  4.5, 5,    6,   7,    8,   9,    10,  15,  20,  25,  30,  40,  50,   60};
static const double queue_buckets[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000};

static void on_taken(void *ctx, int64_t queued_ms)
{
    struct controller *c = ctx;
    metric_observe(c->metrics.queue_time, (double)queued_ms / 1e3);
}

static void on_done(void *ctx, int64_t worked_ms)
{
    struct controller *c = ctx;
    metric_observe(c->metrics.work_time, (double)worked_ms / 1e3);
    metric_observe(c->metrics.reconcile_time, (double)worked_ms / 1e3);
}

static void collect(void *ctx)
{
    struct controller *c = ctx;
    struct controller_metrics *m = &c->metrics;
    struct workqueue_stats stats;
    workqueue_stats(c->queue, &stats);
    metric_set(m->active, c->in_progress);
    metric_set(m->depth, (double)stats.depth);
    metric_set(m->adds, (double)stats.adds);
    metric_set(m->retries, (double)stats.retries);
    metric_set(m->unfinished, (double)stats.unfinished_ms / 1e3);
    metric_set(m->longest, (double)stats.longest_running_ms / 1e3);
}

static void register_reconcile_metrics(struct controller_metrics *cm, struct metrics *m, const char *name,
                                       int max_concurrent)
{
    static const char *const outcomes[] = {"success", "error", "requeue", "requeue_after"};
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        struct buf labels = BUF_INIT(1024);
        metrics_label(&labels, "controller", name);
        metrics_label(&labels, "result", outcomes[i]);
        cm->outcomes[i] = metrics_counter(m, "controller_runtime_reconcile_total",
                                          "Total number of reconciliations per controller", buf_str(&labels));
        buf_done(&labels);
    }
    struct buf labels = BUF_INIT(1024);
    metrics_label(&labels, "controller", name);
    const char *l = buf_str(&labels);
    cm->errors = metrics_counter(m, "controller_runtime_reconcile_errors_total",
                                 "Total number of reconciliation errors per controller", l);
    cm->reconcile_time = metrics_histogram(m, "controller_runtime_reconcile_time_seconds",
                                           "Length of time per reconciliation per controller", l, reconcile_buckets,
                                           ARRAY_LEN(reconcile_buckets));
    cm->active =
        metrics_gauge(m, "controller_runtime_active_workers", "Number of currently used workers per controller", l);
    metric_set(metrics_gauge(m, "controller_runtime_max_concurrent_reconciles",
                             "Maximum number of concurrent reconciles per controller", l),
               max_concurrent);
    buf_done(&labels);
}

static void register_queue_metrics(struct controller_metrics *cm, struct metrics *m, const char *name)
{
    struct buf labels = BUF_INIT(1024);
    metrics_label(&labels, "controller", name);
    metrics_label(&labels, "name", name);
    const char *l = buf_str(&labels);
    cm->depth = metrics_gauge(m, "workqueue_depth", "Current depth of workqueue", l);
    cm->adds = metrics_counter(m, "workqueue_adds_total", "Total number of adds handled by workqueue", l);
    cm->retries = metrics_counter(m, "workqueue_retries_total", "Total number of retries handled by workqueue", l);
    cm->queue_time = metrics_histogram(m, "workqueue_queue_duration_seconds",
                                       "How long in seconds an item stays in workqueue before being requested", l,
                                       queue_buckets, ARRAY_LEN(queue_buckets));
    cm->work_time = metrics_histogram(m, "workqueue_work_duration_seconds",
                                      "How long in seconds processing an item from workqueue takes.", l, queue_buckets,
                                      ARRAY_LEN(queue_buckets));
    cm->unfinished = metrics_gauge(m, "workqueue_unfinished_work_seconds",
                                   "How many seconds of work has been done that is in progress and hasn't been "
                                   "observed by work_duration.",
                                   l);
    cm->longest = metrics_gauge(m, "workqueue_longest_running_processor_seconds",
                                "How many seconds has the longest running processor for workqueue been running.", l);
    buf_done(&labels);
}

// Looks for keys in the next turn of the loop, never inside the caller.
static void wake(struct controller *c)
{
    if (c->running && c->in_progress < c->options.max_concurrent)
        loop_timer_arm(c->timer, 0);
}

static void give_out(void *ctx)
{
    struct controller *c = ctx;
    // A reconcile may finish at once. The number of keys in a turn is bounded, or a long queue would starve the
    // sockets.
    for (int i = 0; i < c->options.max_concurrent && c->running && c->in_progress < c->options.max_concurrent; i++) {
        const char *key = workqueue_get(c->queue);
        if (!key) {
            int64_t wait = workqueue_wait_ms(c->queue);
            if (wait >= 0)
                loop_timer_arm(c->timer, wait);
            else
                loop_timer_disarm(c->timer);
            return;
        }
        c->in_progress++;
        c->options.reconcile(c->options.ctx, key);
    }
    wake(c);
}

struct controller *controller_new(struct loop *loop, const struct controller_options *options)
{
    struct controller *c = xcalloc(1, sizeof *c);
    c->options = *options;
    if (!c->options.max_concurrent)
        c->options.max_concurrent = DEFAULT_CONCURRENT;
    c->queue = workqueue_new(loop_clock(loop));
    c->timer = loop_timer_new(loop, give_out, c);
    if (options->metrics) {
        register_reconcile_metrics(&c->metrics, options->metrics, options->name, c->options.max_concurrent);
        register_queue_metrics(&c->metrics, options->metrics, options->name);
        workqueue_observe(c->queue, on_taken, on_done, c);
        metrics_on_collect(options->metrics, collect, c);
    }
    return c;
}

void controller_free(struct controller *c)
{
    if (!c)
        return;
    if (c->options.metrics)
        metrics_off_collect(c->options.metrics, collect, c);
    loop_timer_free(c->timer);
    workqueue_free(c->queue);
    free(c);
}

void controller_add(struct controller *c, const char *key)
{
    workqueue_add(c->queue, key);
    wake(c);
}

void controller_start(struct controller *c)
{
    c->running = true;
    wake(c);
}

void controller_stop(struct controller *c)
{
    c->running = false;
    loop_timer_disarm(c->timer);
    workqueue_clear(c->queue);
}

void controller_retry(struct controller *c)
{
    workqueue_retry(c->queue);
    wake(c);
}

bool controller_idle(const struct controller *c)
{
    return c->in_progress == 0;
}

static enum outcome requeue(struct workqueue *q, const char *key, struct reconcile_result result)
{
    if (result.code) {
        workqueue_add_backoff(q, key);
        return OUTCOME_ERROR;
    }
    if (result.requeue_ms == 0) {
        workqueue_add_backoff(q, key);
        return OUTCOME_REQUEUE;
    }
    workqueue_forget(q, key);
    if (result.requeue_ms < 0)
        return OUTCOME_SUCCESS;
    workqueue_add_after(q, key, result.requeue_ms);
    return OUTCOME_REQUEUE_AFTER;
}

void controller_finish(struct controller *c, const char *key, struct reconcile_result result)
{
    enum outcome outcome = requeue(c->queue, key, result);
    metric_add(c->metrics.outcomes[outcome], 1);
    metric_add(c->metrics.errors, outcome == OUTCOME_ERROR);
    workqueue_done(c->queue, key); // this may free the key
    c->in_progress--;
    wake(c);
}
