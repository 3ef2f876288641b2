// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/trials.h"

#include "bench/lib/metrics.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/pod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_S = 900,
    WEBHOOKS_S = 60,
    SETTLES_MS = 1500,
    LOOK_MS = 2000,
    SETTLE_S = 60,
    IDLE_MS = 4000,
    LEASES_MS = 40 * 1000, // in which every fake node renews its lease once
    METRICS_MS = 30 * 1000
};

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

static double requests_but(const char *text, const char *const *labels, size_t n)
{
    const char *family = "apiserver_request_total";
    double requests = metrics_sum(text, family, "");
    for (size_t i = 0; i < n; i++)
        requests -= metrics_sum(text, family, labels[i]);
    return requests;
}

// Watches are not counted, because they last; nor leases, which 1,000 nodes renew in bursts, whatever else happens.
static struct counters counters_now(struct world *w)
{
    struct page p = {0};
    kube_get_path(w->client, "/metrics", METRICS_MS, on_page, &p);
    while (!p.answered)
        loop_run_once(w->loop, 100);
    static const char *const left_out[] = {"verb=\"WATCH\"", "resource=\"leases\""};
    const char *text = p.text ? p.text : "";
    struct counters now = {.at_us = proc_now_us(),
                           .requests = requests_but(text, left_out, ARRAY_LEN(left_out)),
                           .webhooks = metrics_sum(text, "apiserver_admission_webhook_request_total", "")};
    free(p.text);
    return now;
}

static double requests_between(const struct counters *before, const struct counters *after, double idle_per_s)
{
    double took = (double)(after->at_us - before->at_us) / 1e6;
    return MAX(after->requests - before->requests - idle_per_s * took, 0);
}

// --- idle

static void idle_measure(struct bench *b, int64_t ms, struct idle *ret)
{
    struct samples used[COMPONENTS_MAX] = {0};
    struct meter m;
    memset(b->idle, 0, sizeof b->idle);
    struct counters before = counters_now(&b->world);
    meter_begin(b, &m);
    world_sleep(&b->world, ms);
    meter_end(b, &m, used);
    struct counters after = counters_now(&b->world);
    for (size_t i = 0; i < b->world.n_components; i++)
        ret->cpu[i] = used[i].values[0] * 1000 / (double)ms;
    ret->requests = requests_between(&before, &after, 0) * 1e6 / (double)(after.at_us - before.at_us);
}

// Until the requests are as few as when nothing is asked: the garbage collector goes on long after the last pod.
static void world_settle(struct world *w, const struct idle *idle)
{
    const double most = idle->requests * 1.25 + 5;
    for (int64_t end = proc_now_us() + (int64_t)SETTLE_S * 1000000;;) {
        struct counters before = counters_now(w);
        world_sleep(w, LOOK_MS);
        struct counters after = counters_now(w);
        double rate = requests_between(&before, &after, 0) * 1e6 / (double)(after.at_us - before.at_us);
        if (rate <= most)
            return;
        if (proc_now_us() > end) {
            fprintf(stderr, "bench-peers: still %.0f requests a second instead of %.0f: goes on\n", rate,
                    idle->requests);
            return;
        }
    }
}

// --- trials

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

// A pod of the group is deleted: time until eight new ones run.
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
                  &(struct operator_setup){.program = t->program, .log = t->log, .port = t->system->port});
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

static void own_round(struct bench *b, const struct plan *plan, bool last, struct trials *t)
{
    char prefix[PREFIX_MAX], group[PREFIX_MAX + 12];
    const struct system *s = t->system;
    single(b, s, NULL); // its webhooks answer, its caches are warm
    for (int i = 0; i < plan->singles; i++)
        single(b, s, &t->own.single);
    bench_prefix(b, prefix, sizeof prefix, s->name);
    many(b, s, prefix, plan->groups, &t->with, &t->own);
    snprintf(group, sizeof group, "%s%d", prefix, plan->groups / 2);
    for (int i = 0; last && t->program && i < plan->restarts; i++)
        restart(b, group, &t->restart);
    many_end(b, s, prefix, plan->groups, &t->own);
}

void trials_begin(struct bench *b, const struct plan *plan, struct idle *ret)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    system_create(&system_pinned, w, bench_prefix(b, prefix, sizeof prefix, "warm"), plan->groups, 0);
    world_wait(w, &w->trial.running_us, WAIT_S, "pods of the warm-up");
    world_clean(w, prefix);
    fprintf(stderr, "bench-peers: what is used when nothing is asked: %d s\n", LEASES_MS / 1000);
    idle_measure(b, LEASES_MS, ret);
}

void trials_run(struct bench *b, const struct plan *plan, int round, const struct idle *without, struct trials *t)
{
    floor_round(b, plan, without, &t->floor);
    world_settle(&b->world, without);
    manager_start(b, t);
    if (round == 0) {
        struct idle now = {0};
        idle_measure(b, IDLE_MS, &now);
        t->with = *without;
        t->with.cpu[b->world.n_components - 1] = now.cpu[b->world.n_components - 1];
        t->idle = proc_memory(b->operator.pid);
    }
    own_round(b, plan, round == plan->rounds - 1, t);
    world_settle(&b->world, &t->with);
    manager_stop(b, t);
    fprintf(stderr, "bench-peers: %d groups, round %d: bare pinned %.1f s, %s %.1f s (load %.1f)\n", plan->groups,
            round + 1, t->floor.many.values[round] / 1e3, t->system->title, t->own.many.values[round] / 1e3,
            proc_load());
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
