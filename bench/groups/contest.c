// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/contest.h"

#include "bench/groups/requests.h"
#include "common/base/mem.h"

#include <stdio.h>

enum { WAIT_S = 300, STATUS_SETTLES_MS = 3000, IDLE_MS = 5000 };

void meter_begin(const struct bench *b, struct meter *m)
{
    m->began_us = proc_now_us();
    for (size_t i = 0; i < b->world.n_components; i++)
        m->before[i] = proc_cpu_s(b->world.components[i]);
}

void meter_end(const struct bench *b, const struct meter *m, struct samples *ret)
{
    double took = (double)(proc_now_us() - m->began_us) / 1e6;
    for (size_t i = 0; i < b->world.n_components; i++)
        samples_add(&ret[i], MAX(proc_cpu_s(b->world.components[i]) - m->before[i] - b->idle[i] * took, 0));
}

void bench_measure_idle(struct bench *b)
{
    struct samples used[COMPONENTS_MAX] = {0};
    struct meter m;
    for (size_t i = 0; i < COMPONENTS_MAX; i++)
        b->idle[i] = 0;
    world_quiesce(&b->world);
    meter_begin(b, &m);
    world_sleep(&b->world, IDLE_MS);
    meter_end(b, &m, used);
    b->world.idle = 0;
    for (size_t i = 0; i < b->world.n_components; i++) {
        b->idle[i] = used[i].values[0] * 1000 / IDLE_MS;
        b->world.idle += b->idle[i];
    }
}

const char *bench_prefix(struct bench *b, char *ret, size_t size, const char *kind)
{
    snprintf(ret, size, "%s%d-", kind, ++b->trials);
    return ret;
}

static double ms_until(const struct world *w, int64_t us)
{
    return (double)(us - w->trial.began_us) / 1e3;
}

static void take_times(const struct world *w, struct side *s)
{
    samples_add(&s->seen, ms_until(w, w->trial.seen_us));
    samples_add(&s->running, ms_until(w, w->trial.running_us));
}

static double requests_so_far(struct bench *b)
{
    struct requests r;
    requests_take(&b->world, &r);
    return requests_total(&r);
}

static void pods_trial(struct bench *b, enum pod_kind kind, int pods, struct side *s)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    double before = requests_so_far(b);
    struct meter m;
    meter_begin(b, &m);
    world_create_pods(w, bench_prefix(b, prefix, sizeof prefix, kind == POD_BARE ? "bare" : "alike"), pods, kind);
    world_wait(w, &w->trial.running_us, WAIT_S, "pods of the floor");
    take_times(w, s);
    world_quiesce(w);
    meter_end(b, &m, s->cpu);
    samples_add(&s->requests, (requests_so_far(b) - before) * GROUP_SIZE / pods);
    world_clean(w, prefix);
}

void contest_groups(struct bench *b, const char *prefix, int groups, struct contest *c)
{
    struct world *w = &b->world;
    struct operator_counters before = operator_counters(&b->operator);
    double requests = requests_so_far(b);
    struct meter m;
    meter_begin(b, &m);
    world_create_groups(w, prefix, groups);
    world_wait(w, &w->trial.running_us, WAIT_S, "pods of groups");
    world_wait(w, &w->trial.ready_us, WAIT_S, "Ready groups");
    take_times(w, &c->groups);
    samples_add(&c->ready, ms_until(w, w->trial.ready_us));
    world_quiesce(w);
    meter_end(b, &m, c->groups.cpu);
    world_sleep(w, STATUS_SETTLES_MS);
    struct operator_counters after = operator_counters(&b->operator);
    samples_add(&c->groups.requests, (requests_so_far(b) - requests) / groups);
    double posts = after.posts - before.posts, patches = after.patches - before.patches;
    samples_add(&c->writes, (posts + patches + after.deletes - before.deletes) / groups);
    samples_add(&c->posts, posts / groups);
    samples_add(&c->patches, patches / groups);
    samples_add(&c->errors, (after.errors - before.errors) / groups);
    samples_add(&c->reconciles, (after.reconciles - before.reconciles) / groups);
}

void contest_run(struct bench *b, int groups, int pairs, struct contest *c)
{
    char prefix[PREFIX_MAX];
    for (int i = 0; i < pairs; i++) {
        pods_trial(b, POD_BARE, groups * GROUP_SIZE, &c->bare);
        pods_trial(b, POD_ALIKE, groups * GROUP_SIZE, &c->alike);
        contest_groups(b, bench_prefix(b, prefix, sizeof prefix, "group"), groups, c);
        world_clean(&b->world, prefix);
        fprintf(stderr,
                "bench-groups: %d x %d pods, round %d: bare %.0f ms, alike %.0f ms, groups %.0f ms (load %.1f)\n",
                groups, GROUP_SIZE, i + 1, c->bare.running.values[i], c->alike.running.values[i],
                c->groups.running.values[i], proc_load());
    }
}

double contest_operator_cpu(const struct bench *b, const struct contest *c)
{
    return samples_median(&c->groups.cpu[b->world.n_components - 1]);
}

void side_total_cpu(const struct bench *b, const struct side *s, struct samples *ret)
{
    *ret = (struct samples){0};
    for (size_t k = 0; k < s->cpu[0].n; k++) {
        double sum = 0;
        for (size_t i = 0; i < b->world.n_components; i++)
            sum += s->cpu[i].values[k];
        samples_add(ret, sum);
    }
}
