// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/trials.h"

#include "bench/lib/metrics.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_S = 900, WEBHOOKS_S = 60, SETTLES_MS = 1500, METRICS_MS = 30 * 1000 };

// --- the API server's counters

struct counters {
    int64_t at_us;
    double requests, webhooks;
};

struct page {
    bool answered;
    char *text;
};

static void on_page(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct page *p = ctx;
    p->answered = true;
    if (response)
        p->text = xstrdup(response->body);
    else
        fprintf(stderr, "bench-peers: metrics of the API server: %s\n", err->msg);
}

// Watches are not counted: they are requests that last.
static struct counters counters_now(struct world *w)
{
    struct page p = {0};
    kube_get_path(w->client, "/metrics", METRICS_MS, on_page, &p);
    while (!p.answered)
        loop_run_once(w->loop, 100);
    const char *text = p.text ? p.text : "", *requests = "apiserver_request_total";
    struct counters now = {.at_us = proc_now_us(),
                           .requests = metrics_sum(text, requests, "") - metrics_sum(text, requests, "verb=\"WATCH\""),
                           .webhooks = metrics_sum(text, "apiserver_admission_webhook_request_total", "")};
    free(p.text);
    return now;
}

static double requests_between(const struct counters *before, const struct counters *after, double idle_per_s)
{
    double took = (double)(after->at_us - before->at_us) / 1e6;
    return MAX(after->requests - before->requests - idle_per_s * took, 0);
}

// --- trials

struct idle { // what is used when nothing is asked, a second
    double cpu[COMPONENTS_MAX], requests;
};

static void idle_measure(struct bench *b, struct idle *ret)
{
    struct counters before = counters_now(&b->world);
    bench_measure_idle(b);
    struct counters after = counters_now(&b->world);
    memcpy(ret->cpu, b->idle, sizeof ret->cpu);
    ret->requests = requests_between(&before, &after, 0) * 1e6 / (double)(after.at_us - before.at_us);
}

static double ms_until(const struct world *w, int64_t us)
{
    return (double)(us - w->trial.began_us) / 1e3;
}

static void single(struct bench *b, const struct system *s, struct samples *ret)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    system_create(s, w, bench_prefix(b, prefix, sizeof prefix, s->name), 1, WEBHOOKS_S);
    world_wait(w, &w->trial.running_us, WAIT_S, "one group");
    if (ret)
        samples_add(ret, ms_until(w, w->trial.running_us));
    system_delete(s, w, prefix, 1);
    world_wait(w, &w->trial.gone_us, WAIT_S, "the end of one group");
    world_clean(w, prefix);
}

static void many(struct bench *b, const struct system *s, const char *prefix, int groups, const struct idle *idle,
                 struct measures *m)
{
    struct world *w = &b->world;
    struct meter meter;
    struct counters before = counters_now(w);
    memcpy(b->idle, idle->cpu, sizeof b->idle);
    meter_begin(b, &meter);
    system_create(s, w, prefix, groups, 0);
    world_wait(w, &w->trial.running_us, WAIT_S, "all groups");
    samples_add(&m->many, ms_until(w, w->trial.running_us));
    world_quiesce(w);
    meter_end(b, &meter, m->cpu);
    struct counters after = counters_now(w);
    samples_add(&m->requests, requests_between(&before, &after, idle->requests) / groups);
    samples_add(&m->webhooks, (after.webhooks - before.webhooks) / groups);
}

static void many_end(struct bench *b, const struct system *s, const char *prefix, int groups, struct measures *m)
{
    struct world *w = &b->world;
    system_delete(s, w, prefix, groups);
    world_wait(w, &w->trial.gone_us, WAIT_S, "the end of all groups");
    samples_add(&m->deleted, ms_until(w, w->trial.gone_us));
    world_clean(w, prefix);
}

// --- restarts

struct lives { // of one group's pods
    const char *prefix;
    char name[256];            // of one of them
    char uids[GROUP_SIZE][64]; // of those that are to be replaced
    int n, fresh;              // pods seen; those that run and are none of these
};

static void take_old(void *ctx, const struct object *o)
{
    struct lives *l = ctx;
    if (!str_starts(o->meta.name, l->prefix) || o->meta.deleted_ms || l->n == GROUP_SIZE)
        return;
    if (strcmp(o->meta.name, l->name) > 0) // the last by name: a worker where there is a leader
        snprintf(l->name, sizeof l->name, "%s", o->meta.name);
    snprintf(l->uids[l->n++], sizeof l->uids[0], "%s", o->meta.uid);
}

static void count_fresh(void *ctx, const struct object *o)
{
    struct lives *l = ctx;
    if (!str_starts(o->meta.name, l->prefix) || o->meta.deleted_ms || pod_of(o)->phase != POD_RUNNING)
        return;
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->uids[i], o->meta.uid) == 0)
            return;
    l->fresh++;
}

// A pod of the group is deleted: time until eight run of which none is an old one.
static void restart(struct bench *b, const char *group, struct samples *ret)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX + 16];
    snprintf(prefix, sizeof prefix, "%s-", group);
    struct lives l = {.prefix = prefix};
    store_each(w->pods, take_old, &l);
    world_delete_pod(w, prefix, l.name, GROUP_SIZE);
    for (int64_t end = proc_now_us() + (int64_t)WAIT_S * 1000000; l.fresh != GROUP_SIZE;) {
        if (proc_now_us() > end) {
            fprintf(stderr, "bench-peers: %s does not restart: %d of %d new pods run\n", group, l.fresh, GROUP_SIZE);
            exit(1);
        }
        loop_run_once(w->loop, 100);
        l.fresh = 0;
        store_each(w->pods, count_fresh, &l);
    }
    samples_add(ret, ms_until(w, proc_now_us()));
    world_sleep(w, SETTLES_MS);
    world_quiesce(w);
}

// --- a system

static void manager_start(struct bench *b, const struct trials *t)
{
    if (!t->program)
        return;
    operator_open(&b->operator, b->world.loop,
                  &(struct operator_options){.program = t->program, .log = t->log, .port = t->system->port});
    operator_start(&b->operator);
    b->world.components[b->world.n_components - 1] = b->operator.pid;
}

static void manager_stop(struct bench *b, struct trials *t)
{
    if (!t->program)
        return;
    t->peak.rss = MAX(t->peak.rss, b->operator.peak.rss);
    t->peak.anon = MAX(t->peak.anon, b->operator.peak.anon);
    operator_close(&b->operator);
    b->world.components[b->world.n_components - 1] = 0;
}

static void floor_round(struct bench *b, const struct plan *plan, const struct idle *idle, struct measures *m)
{
    char prefix[PREFIX_MAX];
    for (int i = 0; i < plan->singles; i++)
        single(b, &system_pinned, &m->single);
    bench_prefix(b, prefix, sizeof prefix, system_pinned.name);
    many(b, &system_pinned, prefix, plan->groups, idle, m);
    many_end(b, &system_pinned, prefix, plan->groups, m);
}

static void own_round(struct bench *b, const struct plan *plan, struct idle *idle, bool last, struct trials *t)
{
    char prefix[PREFIX_MAX], group[PREFIX_MAX + 12];
    const struct system *s = t->system;
    single(b, s, NULL); // its webhooks answer, its caches are warm
    for (int i = 0; i < plan->singles; i++)
        single(b, s, &t->own.single);
    bench_prefix(b, prefix, sizeof prefix, s->name);
    many(b, s, prefix, plan->groups, idle, &t->own);
    snprintf(group, sizeof group, "%s%d", prefix, plan->groups / 2);
    for (int i = 0; last && t->program && i < plan->restarts; i++)
        restart(b, group, &t->restart);
    many_end(b, s, prefix, plan->groups, &t->own);
}

void trials_warm_up(struct bench *b, const struct plan *plan)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    system_create(&system_pinned, w, bench_prefix(b, prefix, sizeof prefix, "warm"), plan->groups, 0);
    world_wait(w, &w->trial.running_us, WAIT_S, "pods of the warm-up");
    world_clean(w, prefix);
}

void trials_run(struct bench *b, const struct plan *plan, struct trials *t)
{
    struct idle without, with;
    idle_measure(b, &without);
    for (int round = 0; round < plan->rounds; round++) {
        floor_round(b, plan, &without, &t->floor);
        manager_start(b, t);
        if (round == 0) {
            idle_measure(b, &with);
            t->idle = proc_memory(b->operator.pid);
        }
        own_round(b, plan, &with, round == plan->rounds - 1, t);
        manager_stop(b, t);
        fprintf(stderr, "bench-peers: %d groups, round %d: bare pinned %.1f s, %s %.1f s (load %.1f)\n", plan->groups,
                round + 1, t->floor.many.values[round] / 1e3, t->system->title, t->own.many.values[round] / 1e3,
                proc_load());
    }
}

void measures_total_cpu(const struct world *w, const struct measures *m, struct samples *ret)
{
    *ret = (struct samples){0};
    for (size_t k = 0; k < m->cpu[0].n; k++) {
        double sum = 0;
        for (size_t i = 0; i < w->n_components; i++)
            sum += m->cpu[i].values[k];
        samples_add(ret, sum);
    }
}
