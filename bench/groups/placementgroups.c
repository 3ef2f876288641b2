// SPDX-License-Identifier: Apache-2.0
#include "bench/groups/placementgroups.h"

#include "bench/groups/report.h"
#include "common/base/mem.h"

#include <stdio.h>

enum { WAIT_S = 300 };

static double ms_since(const struct world *w, int64_t us)
{
    return (double)(us - w->trial.began_us) / 1e3;
}

struct before { // so far
    int64_t at_us;
    double cpu[COMPONENTS_MAX];
    struct requests requests;
};

static void take_before(struct bench *b, struct before *ret)
{
    requests_take(&b->world, &ret->requests);
    ret->at_us = proc_now_us();
    for (size_t i = 0; i < b->world.n_components; i++)
        ret->cpu[i] = proc_cpu_s(b->world.components[i]);
}

static double requests_since(struct bench *b, const struct before *before, struct requests *all)
{
    struct requests now;
    requests_take(&b->world, &now);
    requests_add_between(&before->requests, &now, all);
    return requests_total(&now) - requests_total(&before->requests);
}

// CPU beyond what the same time costs when nothing is asked.
static double cpu_since(const struct bench *b, const struct before *before, struct side *side)
{
    double all = 0, took = (double)(proc_now_us() - before->at_us) / 1e6;
    for (size_t i = 0; i < b->world.n_components; i++) {
        double used = proc_cpu_s(b->world.components[i]) - before->cpu[i];
        double one = MAX(used - b->idle[i] * took, 0);
        samples_add(&side->cpu[i], one);
        all += one;
    }
    return all;
}

static double delete_all(struct world *w, const char *prefix, int pods)
{
    world_delete(w, prefix, pods);
    world_wait(w, &w->trial.gone_us, WAIT_S, "the end of pods");
    return ms_since(w, w->trial.gone_us);
}

static void bare(struct bench *b, int groups, int pods, struct placementgroups *r)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    struct before before;
    take_before(b, &before);
    noise_begin(b->noise);
    world_create_pods(w, bench_prefix(b, prefix, sizeof prefix, "bare"), pods, POD_BARE);
    world_wait(w, &w->trial.running_us, WAIT_S, "pods of the floor");
    double running = ms_since(w, w->trial.running_us), gone = delete_all(w, prefix, pods);
    noise_end(b->noise);
    samples_add(&r->bare_running, running);
    samples_add(&r->bare_gone, gone);
    samples_add(&r->bare_both, running + gone);
    world_quiesce(w);
    samples_add(&r->bare_cpu, cpu_since(b, &before, &r->bare_side));
    samples_add(&r->bare_requests, requests_since(b, &before, &r->bare_kinds) / groups);
    world_clean(w, prefix);
}

static double writes(const struct operator_counters *c)
{
    return c->posts + c->patches + c->deletes;
}

static void reserved(struct bench *b, int groups, int bundles, struct placementgroups *r)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    struct operator_counters first = operator_counters(&b->operator), last;
    struct before before;
    take_before(b, &before);
    noise_begin(b->noise);
    world_create_placementgroups(w, bench_prefix(b, prefix, sizeof prefix, "plg"), groups, bundles);
    world_wait(w, &w->trial.running_us, WAIT_S, "pods of PlacementGroups");
    world_wait(w, &w->trial.ready_us, WAIT_S, "Ready PlacementGroups");
    double running = ms_since(w, w->trial.running_us), ready = ms_since(w, w->trial.ready_us);
    double gone = delete_all(w, prefix, groups * bundles);
    noise_end(b->noise);
    samples_add(&r->running, running);
    samples_add(&r->ready, ready);
    samples_add(&r->gone, gone);
    samples_add(&r->both, ready + gone);
    samples_add(&r->rate, groups / ((ready + gone) / 1e3));
    world_quiesce(w);
    samples_add(&r->cpu, cpu_since(b, &before, &r->side));
    samples_add(&r->operator_cpu, proc_cpu_s(w->components[w->n_components - 1]) - before.cpu[w->n_components - 1]);
    samples_add(&r->requests, requests_since(b, &before, &r->kinds) / groups);
    last = operator_counters(&b->operator);
    samples_add(&r->writes, (writes(&last) - writes(&first)) / groups);
    world_clean(w, prefix);
}

void placementgroups_run(struct bench *b, int groups, int bundles, int rounds, struct placementgroups *ret)
{
    for (int i = 0; i < rounds; i++) {
        bare(b, groups, groups * bundles, ret);
        reserved(b, groups, bundles, ret);
        fprintf(stderr,
                "bench-groups: %d PlacementGroups of %d, round %d: bare %.0f + %.0f ms, reserved %.0f + %.0f ms "
                "(load %.1f)\n",
                groups, bundles, i + 1, ret->bare_running.values[i], ret->bare_gone.values[i], ret->ready.values[i],
                ret->gone.values[i], proc_load());
    }
}

// Each kind that came to a tenth of a request or more.
static void report_kinds(const struct placementgroups *r, int groups)
{
    double times = groups * (double)r->both.n;
    struct requests all = {0};
    requests_add_between(&(struct requests){0}, &r->kinds, &all);
    requests_add_between(&(struct requests){0}, &r->bare_kinds, &all);
    for (size_t i = 0; i < all.n; i++) {
        char line[192];
        const char *what = all.kinds[i].what;
        double bare = requests_of(&r->bare_kinds, what) / times, ours = requests_of(&r->kinds, what) / times;
        if (MAX(bare, ours) < 0.1)
            continue;
        snprintf(line, sizeof line, "    %s", what);
        report_both(line, "", bare, ours);
    }
}

void placementgroups_report(const struct bench *b, const char *size, int groups, const struct placementgroups *r,
                            double factor)
{
    char line[96], name[32];
    if (!r->both.n)
        return;
    snprintf(line, sizeof line, "%s: created and deleted", size);
    report_pairs(line, "ms", &r->bare_both, &r->both, factor);
    report_pairs("  all Running", "ms", &r->bare_running, &r->running, 0);
    report_pairs("  all Ready (floor: Running)", "ms", &r->bare_running, &r->ready, 0);
    report_pairs("  all pods gone", "ms", &r->bare_gone, &r->gone, 0);
    report_pairs("  CPU of all components", "s", &r->bare_cpu, &r->cpu, 0);
    for (size_t i = 0; i < b->world.n_components; i++) {
        snprintf(line, sizeof line, "    %s", proc_name(b->world.components[i], name, sizeof name));
        report_pairs(line, "s", &r->bare_side.cpu[i], &r->side.cpu[i], 0);
    }
    report_median("  of it the operator", "s", &r->operator_cpu, 0);
    report_pairs("  API requests of all clients, each", "", &r->bare_requests, &r->requests, 0);
    report_kinds(r, groups);
    report_median("  PlacementGroups a second", "/s", &r->rate, 0);
    report_median("  writes each", "", &r->writes, 0);
}
