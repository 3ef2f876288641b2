// SPDX-License-Identifier: Apache-2.0
// The cost of planning, in CPU time of one core: no I/O, no API server. Gangs come and go on a cluster that stays
// three quarters full: each one is planned, its pods are assumed, and the oldest one leaves.
#include "operator/placement/planner.h"
#include "bench/lib/samples.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "operator/api/pod_constraints.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GPUS = 8, RACK = 20, PERCENT = 75, GANGS_MAX = 1 << 14, ROUNDS = 9, ROUND_NS = 100 * 1000 * 1000 };

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *new_object(enum kind kind, size_t size, const char *name)
{
    struct arena arena = ARENA_INIT;
    arena_init(&arena, 512);
    struct object *o = arena_alloc(&arena, size);
    o->refs = 1;
    o->kind = kind;
    o->meta.name = arena_strdup(&arena, name);
    o->meta.ns = "ml";
    o->arena = arena;
    return o;
}

static struct resources amounts(struct arena *a, int gpus, int cpus, int pods)
{
    const struct resource items[] = {{RESOURCE_CPU, cpus * 1000},
                                     {RESOURCE_MEMORY, (int64_t)cpus * 4294967296000},
                                     {RESOURCE_PODS, pods * 1000},
                                     {RESOURCE_GPU, gpus * 1000}};
    return (struct resources){arena_memdup(a, items, sizeof items), gpus ? 4 : 3};
}

struct world {
    struct cluster *cluster;
    int nodes;
    int64_t made, gone, used; // gangs, by number
    int16_t pods[GANGS_MAX];  // of each, ring
};

static void add_node(struct world *w, int i)
{
    char text[32];
    snprintf(text, sizeof text, "node-%d", i);
    struct node *n = new_object(KIND_NODE, sizeof *n, text);
    struct arena *a = &n->obj.arena;
    snprintf(text, sizeof text, "rack-%d", i / RACK);
    struct label *labels = arena_array(a, 2, sizeof *labels);
    labels[0] = (struct label){"kubernetes.io/hostname", n->obj.meta.name};
    labels[1] = (struct label){"rack", arena_strdup(a, text)};
    n->obj.meta.labels = (struct labels){labels, 2};
    n->ready = true;
    n->allocatable = amounts(a, GPUS, 64, 110);
    cluster_set_node(w->cluster, n);
    object_unref(&n->obj);
}

static struct world *world_new(int nodes)
{
    struct world *w = xcalloc(1, sizeof *w);
    w->cluster = cluster_new();
    w->nodes = nodes;
    for (int i = 0; i < nodes; i++)
        add_node(w, i);
    return w;
}

static void world_free(struct world *w)
{
    cluster_free(w->cluster);
    free(w);
}

static void gang_comes(struct world *w, const struct gang *g, const struct placement *p, int32_t priority)
{
    char uid[32], name[48];
    int64_t number = w->made++;
    w->pods[number % GANGS_MAX] = (int16_t)g->n_bundles;
    w->used += (int64_t)g->n_bundles; // of one GPU each
    snprintf(uid, sizeof uid, "g%" PRId64, number);
    for (size_t i = 0; i < g->n_bundles; i++) {
        snprintf(name, sizeof name, "g%" PRId64 "-%zu-1", number, i);
        struct pod *pod = new_object(KIND_POD, sizeof *pod, name);
        struct arena *a = &pod->obj.arena;
        pod->node = arena_strdup(a, p->nodes[i]);
        pod->priority = priority;
        pod->requests = g->bundles[i].constraints->requests;
        pod->requests.items = arena_memdup(a, pod->requests.items, pod->requests.n * sizeof *pod->requests.items);
        pod->obj.meta.owner =
            (struct owner){"cadre.dev/v1alpha1", "WorkerGroup", arena_strdup(a, uid), arena_strdup(a, uid)};
        cluster_set_pod(w->cluster, pod);
        object_unref(&pod->obj);
    }
}

static void oldest_goes(struct world *w)
{
    char name[48];
    int64_t number = w->gone++;
    w->used -= w->pods[number % GANGS_MAX];
    for (int i = 0; i < w->pods[number % GANGS_MAX]; i++) {
        snprintf(name, sizeof name, "g%" PRId64 "-%d-1", number, i);
        cluster_del_pod(w->cluster, "ml", name);
    }
}

struct plan_case {
    const char *what;
    int nodes, bundles, shapes;
    enum strategy strategy;
    bool by_rack;
    int gpus;
    int32_t priority;
    enum { PLACES, WAITS, HOLDS } mode; // WAITS: the cluster is full, the answer is why; HOLDS: and what to hold
};

static void make_gang(const struct plan_case *c, struct arena *a, struct gang *g)
{
    struct bundle *bundles = arena_array(a, (size_t)c->bundles, sizeof *bundles);
    struct pod_constraints *shapes = arena_array(a, (size_t)c->shapes, sizeof *shapes);
    for (int i = 0; i < c->shapes; i++)
        shapes[i] = (struct pod_constraints){
            .requests = amounts(a, c->gpus, 1 + i, 1), .preempts = true, .priority = c->priority};
    for (int i = 0; i < c->bundles; i++)
        bundles[i].constraints = &shapes[i % c->shapes];
    *g = (struct gang){.strategy = c->strategy,
                       .topology_key = c->by_rack ? "rack" : NULL,
                       .bundles = bundles,
                       .n_bundles = (size_t)c->bundles};
}

static void fill(struct world *w, int percent)
{
    struct plan_case small = {.bundles = 8, .shapes = 1, .gpus = 1, .strategy = STRATEGY_SPREAD};
    struct arena a = ARENA_INIT;
    struct gang g;
    make_gang(&small, &a, &g);
    while (w->used + 8 <= (int64_t)w->nodes * GPUS * percent / 100) {
        struct arena scratch = ARENA_INIT;
        struct placement p;
        planner_place(w->cluster, &g, &scratch, &p);
        if (p.verdict == VERDICT_PLACED)
            gang_comes(w, &g, &p, 0);
        arena_done(&scratch);
    }
    arena_done(&a);
}

// Nanoseconds of planning for one gang; what comes and goes around it is not counted.
static int64_t one(struct world *w, const struct plan_case *c, const struct gang *g)
{
    struct arena a = ARENA_INIT;
    struct placement p;
    const char **nodes;
    int64_t begun = cpu_ns();
    if (c->mode == HOLDS)
        planner_target(w->cluster, g, &a, &nodes);
    else
        planner_place(w->cluster, g, &a, &p);
    int64_t ns = cpu_ns() - begun;
    if (c->mode == PLACES && !c->priority) {
        if (p.verdict != VERDICT_PLACED) {
            fprintf(stderr, "bench-planner: %s: not placed: %s\n", c->what, p.message);
            exit(EXIT_FAILURE);
        }
        gang_comes(w, g, &p, 0);
        while (w->used > (int64_t)w->nodes * GPUS * PERCENT / 100)
            oldest_goes(w);
    } else if (c->mode == WAITS && p.verdict == VERDICT_PLACED) {
        fprintf(stderr, "bench-planner: %s: placed\n", c->what);
        exit(EXIT_FAILURE);
    }
    arena_done(&a);
    return ns;
}

static double measure(const struct plan_case *c)
{
    struct world *w = world_new(c->nodes);
    struct arena a = ARENA_INIT;
    struct gang g;
    struct samples micros = {0};
    make_gang(c, &a, &g);
    fill(w, c->mode == PLACES && !c->priority ? PERCENT : 100);
    for (int round = 0; round <= ROUNDS; round++) {
        int64_t ns = 0, n = 0, begun = cpu_ns();
        for (; cpu_ns() - begun < ROUND_NS; n++)
            ns += one(w, c, &g);
        if (round) // the first one warms up
            samples_add(&micros, (double)ns / (double)n / 1000);
    }
    double median = samples_median(&micros);
    printf("| %-46s | %5d | %7d | %10.1f | %10.0f |\n", c->what, c->nodes, c->bundles, median, 1e6 / median);
    world_free(w);
    arena_done(&a);
    return median;
}

int main(void)
{
    static const struct plan_case cases[] = {
        {"Pack, 1 bundle", 1000, 1, 1, STRATEGY_PACK, false, 1, 0, PLACES},
        {"Pack, 8 bundles", 1000, 8, 1, STRATEGY_PACK, false, 1, 0, PLACES},
        {"Pack, 40 bundles", 1000, 40, 1, STRATEGY_PACK, false, 1, 0, PLACES},
        {"Pack, 400 bundles", 1000, 400, 1, STRATEGY_PACK, false, 1, 0, PLACES},
        {"Spread, 8", 1000, 8, 1, STRATEGY_SPREAD, false, 1, 0, PLACES},
        {"StrictPack, 2", 1000, 2, 1, STRATEGY_STRICT_PACK, false, 1, 0, PLACES},
        {"StrictSpread, 8", 1000, 8, 1, STRATEGY_STRICT_SPREAD, false, 1, 0, PLACES},
        {"Pack, 8, racks of 20", 1000, 8, 1, STRATEGY_PACK, true, 1, 0, PLACES},
        {"StrictPack, 8, racks of 20", 1000, 8, 1, STRATEGY_STRICT_PACK, true, 1, 0, PLACES},
        {"Spread, 40 bundles of 4 shapes", 1000, 40, 4, STRATEGY_SPREAD, false, 1, 0, PLACES},
        {"Pack, 8", 100, 8, 1, STRATEGY_PACK, false, 1, 0, PLACES},
        {"Pack, 8", 5000, 8, 1, STRATEGY_PACK, false, 1, 0, PLACES},
        {"Pack, 8, all full: why it waits", 1000, 8, 1, STRATEGY_PACK, false, 1, 0, WAITS},
        {"Pack, 8, all full: by preemption", 1000, 8, 1, STRATEGY_PACK, false, 1, 10, PLACES},
        {"StrictPack, 8, all full: by preemption", 1000, 8, 1, STRATEGY_STRICT_PACK, false, 1, 10, PLACES},
        {"StrictPack, 8, all full: what to hold", 1000, 8, 1, STRATEGY_STRICT_PACK, false, 1, 0, HOLDS},
    };
    double micros[ARRAY_LEN(cases)];
    printf("| %-46s | nodes | bundles |  us a gang | gangs a s. |\n", "strategy, on nodes of 8 GPUs, 75 % in use");
    printf("|------------------------------------------------|------:|--------:|-----------:|-----------:|\n");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        micros[i] = measure(&cases[i]);
    printf("\ngangs of 8 a second on 1,000 nodes: %.0f (target: at least 5000)\n", 1e6 / micros[1]);
    printf("40 bundles cost %.1f times what 1 costs (target: at most 50)\n", micros[2] / micros[0]);
    return 1e6 / micros[1] >= 5000 && micros[2] <= 50 * micros[0] ? EXIT_SUCCESS : EXIT_FAILURE;
}
