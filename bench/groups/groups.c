// SPDX-License-Identifier: Apache-2.0
// bench-groups: WorkerGroups through the operator against bare pods that this program creates itself, pinned to the
// same nodes, in turns on the same cluster; and what the operator costs. README.md says how to read the table.
#include "bench/groups/contest.h"
#include "bench/groups/floor.h"
#include "bench/groups/parts.h"
#include "bench/groups/placementgroups.h"
#include "bench/groups/raw.h"
#include "bench/groups/report.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 32, WAIT_S = 300, CREATES = 1000, RESTART_SETTLES_MS = 1500 };

struct settings {
    const char *kubeconfig, *operator_kubeconfig, *program, *log, *ns, *noise_kubeconfig;
    int64_t noise_rate, noise_at_once, port, singles, pairs, thousands, restarts, starts, creates, placementgroups,
        kiloplacementgroups, parts, placementgroup_parts;
};

struct results {
    struct contest single, hundred, thousand;
    struct placementgroups reserved_hundred, reserved_thousand;
    struct samples start_empty, start_full;
    struct samples restart_floor, restart_alone, restart_among;
    struct samples raw, made; // microseconds a pod
    struct proc_memory idle, peak_hundred, peak_thousand, after;
    int present; // groups that were there for restart_among and start_full
};

// --- phases

static void start_up(struct bench *b, int64_t times, struct samples *ret)
{
    struct world *w = &b->world;
    for (int64_t i = 0; i < times; i++) {
        operator_stop(&b->operator);
        world_quiesce(w);
        samples_add(ret, operator_start(&b->operator));
        w->components[w->n_components - 1] = b->operator.pid;
    }
}

struct search {
    const char *group;
    const struct object *pod; // one of the group's
};

static void look_at(void *ctx, const struct object *pod)
{
    struct search *s = ctx;
    if (str_eq(labels_get(&pod->meta.labels, "cadre.dev/group"), s->group))
        s->pod = pod;
}

// One of the pods of a running group is deleted: time until eight new ones run.
static void restarts(struct bench *b, const char *group, int64_t times, struct samples *ret)
{
    struct world *w = &b->world;
    struct arena a = ARENA_INIT;
    const char *prefix = arena_printf(&a, "%s-", group);
    for (int64_t i = 0; i < times; i++) {
        const struct object *const *pods;
        struct search found = {.group = group};
        store_each(w->pods, look_at, &found);
        const struct object *pod = found.pod;
        size_t n = 0;
        if (pod)
            n = store_by_owner(w->pods, &(struct meta){.ns = pod->meta.ns, .uid = pod->meta.owner.uid}, &a, &pods);
        if (n != GROUP_SIZE) {
            fprintf(stderr, "bench-groups: %s has %zu pods after a restart\n", group, n);
            exit(1);
        }
        world_delete_pod(w, prefix, arena_strdup(&a, pods[GROUP_SIZE / 2]->meta.name), GROUP_SIZE);
        world_wait(w, &w->trial.running_us, WAIT_S, "new pods");
        samples_add(ret, (double)(w->trial.running_us - w->trial.began_us) / 1e3);
        world_sleep(w, RESTART_SETTLES_MS);
        world_quiesce(w);
    }
    arena_done(&a);
}

static double delete_and_wait(struct world *w, const char *prefix, int pods)
{
    world_delete(w, prefix, pods);
    world_wait(w, &w->trial.gone_us, WAIT_S, "the end of pods");
    return (double)(w->trial.gone_us - w->trial.began_us) / 1e3;
}

static double create_and_wait(struct world *w, const char *prefix, int pods)
{
    world_create_pods(w, prefix, pods, POD_ALIKE);
    world_wait(w, &w->trial.running_us, WAIT_S, "pods of the floor");
    return (double)(w->trial.running_us - w->trial.began_us) / 1e3;
}

// Does the same as a restart, without any operator: deletes one pod, then the rest, then creates as many new ones.
static void restarts_of_pods(struct bench *b, int64_t times, struct samples *ret)
{
    struct world *w = &b->world;
    char first[PREFIX_MAX], rest[PREFIX_MAX], next[PREFIX_MAX];
    for (int64_t i = 0; i < times; i++) {
        create_and_wait(w, bench_prefix(b, first, sizeof first, "first"), 1);
        create_and_wait(w, bench_prefix(b, rest, sizeof rest, "rest"), GROUP_SIZE - 1);
        world_sleep(w, RESTART_SETTLES_MS);
        world_quiesce(w);
        double took = delete_and_wait(w, first, 1);
        took += delete_and_wait(w, rest, GROUP_SIZE - 1);
        samples_add(ret, took + create_and_wait(w, bench_prefix(b, next, sizeof next, "next"), GROUP_SIZE));
        world_clean(w, next);
    }
}

// Creates `groups` that stay, restarts the one in the middle, and starts the operator again among them.
static void among(struct bench *b, const struct settings *s, int groups, struct samples *restart, struct samples *start)
{
    struct contest unused = {0};
    char prefix[PREFIX_MAX], group[PREFIX_MAX + 12];
    contest_groups(b, bench_prefix(b, prefix, sizeof prefix, "stays"), groups, &unused);
    snprintf(group, sizeof group, "%s%d", prefix, groups / 2);
    restarts(b, group, s->restarts, restart);
    if (start)
        start_up(b, s->starts, start);
    world_clean(&b->world, prefix);
}

// Pods that nobody schedules, created by raw connections and by our client.
static void creates(struct bench *b, int64_t times, struct samples *raw, struct samples *made)
{
    struct world *w = &b->world;
    struct arena a = ARENA_INIT;
    char prefix[PREFIX_MAX];
    const char *path = arena_printf(&a, "/api/v1/namespaces/%s/pods", w->ns);
    const char **bodies = arena_array(&a, CREATES, sizeof *bodies);
    for (int64_t i = 0; i < times; i++) {
        bench_prefix(b, prefix, sizeof prefix, "raw");
        for (int k = 0; k < CREATES; k++)
            bodies[k] = world_pod_body(w, &a, arena_printf(&a, "%s%d", prefix, k), k, POD_IDLE);
        samples_add(raw, raw_post(&w->config, path, bodies, CREATES, IN_FLIGHT) * 1e6 / CREATES);
        world_clean(w, prefix);
        world_create_pods(w, bench_prefix(b, prefix, sizeof prefix, "made"), CREATES, POD_IDLE);
        world_wait_answers(w);
        samples_add(made, (double)(proc_now_us() - w->trial.began_us) / CREATES);
        world_clean(w, prefix);
    }
    arena_done(&a);
}

static void run(struct bench *b, const struct settings *s, struct results *r)
{
    start_up(b, MAX(s->starts, 1), &r->start_empty);
    bench_measure_idle(b);
    r->idle = proc_memory(b->operator.pid);
    contest_run(b, 1, (int)s->singles, &r->single);
    restarts_of_pods(b, s->restarts, &r->restart_floor);
    if (s->restarts)
        among(b, s, 1, &r->restart_alone, NULL);
    contest_run(b, 100, (int)s->pairs, &r->hundred);
    r->peak_hundred = b->operator.peak;
    contest_run(b, 1000, (int)s->thousands, &r->thousand);
    r->peak_thousand = b->operator.peak;
    r->after = proc_memory(b->operator.pid);
    r->present = s->thousands ? 1000 : 100;
    if (s->restarts || s->starts)
        among(b, s, r->present, &r->restart_among, &r->start_full);
    creates(b, s->creates, &r->raw, &r->made);
    placementgroups_run(b, 100, 1, (int)s->placementgroups, &r->reserved_hundred);
    placementgroups_run(b, 1000, 3, (int)s->kiloplacementgroups, &r->reserved_thousand);
}

// --- the table

static void report_cpu(const struct bench *b, const char *size, const struct contest *c)
{
    const struct world *w = &b->world;
    struct samples bare, alike, groups;
    char line[96], name[32];
    side_total_cpu(b, &c->bare, &bare);
    side_total_cpu(b, &c->alike, &alike);
    side_total_cpu(b, &c->groups, &groups);
    snprintf(line, sizeof line, "%s: CPU of all components", size);
    report_pairs(line, "s", &bare, &groups, 1.4);
    report_pairs("  against the same pods", "s", &alike, &groups, 0);
    for (size_t i = 0; i < w->n_components; i++) {
        snprintf(line, sizeof line, "  %s", proc_name(w->components[i], name, sizeof name));
        report_pairs(line, "s", &c->bare.cpu[i], &c->groups.cpu[i], 0);
    }
}

static void report_contest(const char *size, const struct contest *c, double factor)
{
    char line[96];
    snprintf(line, sizeof line, "%s: all Running", size);
    report_pairs(line, "ms", &c->bare.running, &c->groups.running, factor);
    report_quantiles("  p95", "ms", &c->bare.running, &c->groups.running, 0.95);
    report_pairs("  against the same pods", "ms", &c->alike.running, &c->groups.running, 0);
    snprintf(line, sizeof line, "%s: all pods exist", size);
    report_pairs(line, "ms", &c->bare.seen, &c->groups.seen, 0);
    snprintf(line, sizeof line, "%s: Ready (floor: Running)", size);
    report_pairs(line, "ms", &c->bare.running, &c->ready, 0);
}

static void report_costs(const struct bench *b, int groups, const struct contest *c)
{
    char line[96];
    if (!c->writes.n)
        return;
    snprintf(line, sizeof line, "%d groups: writes a group", groups);
    report_number(line, "", samples_median(&c->writes), GROUP_SIZE + 4);
    report_pairs("  API requests of all clients, eight pods", "", &c->bare.requests, &c->groups.requests, 0);
    report_number("  POST", "", samples_median(&c->posts), 0);
    report_number("  PATCH", "", samples_median(&c->patches), 0);
    report_number("  answered with an error", "", samples_median(&c->errors), 0);
    snprintf(line, sizeof line, "%d groups: reconciles a group", groups);
    report_number(line, "", samples_median(&c->reconciles), 0);
    if (groups < 100) // the kernel counts in hundredths of a second
        return;
    snprintf(line, sizeof line, "%d groups: operator CPU for 8,000 pods", groups);
    report_number(line, "s", contest_operator_cpu(b, c) * 1000 / groups, 4);
}

static void report_memory(const char *when, const struct proc_memory *m, double rss, double anon)
{
    char line[96];
    snprintf(line, sizeof line, "operator memory, %s: RSS", when);
    report_number(line, "MiB", m->rss, rss);
    snprintf(line, sizeof line, "operator memory, %s: anonymous", when);
    report_number(line, "MiB", m->anon, anon);
}

static void report(const struct bench *b, const struct results *r)
{
    char line[96];
    report_begin();
    report_contest("1 group of 8", &r->single, 1.5);
    report_contest("100 groups of 8", &r->hundred, 1.3);
    report_cpu(b, "100 groups of 8", &r->hundred);
    report_contest("1,000 groups of 8", &r->thousand, 1.3);
    report_cpu(b, "1,000 groups of 8", &r->thousand);
    report_pairs("create only, our client (floor: raw connections)", "us/pod", &r->raw, &r->made, 1.2);
    placementgroups_report(b, "100 PlacementGroups of 1", 100, &r->reserved_hundred, 1.5);
    placementgroups_report(b, "1,000 PlacementGroups of 3", 1000, &r->reserved_thousand, 1.3);
    report_median("restart of the same pods by the benchmark", "ms", &r->restart_floor, 0);
    report_median("restart of a group by new pods, alone", "ms", &r->restart_alone, 150);
    snprintf(line, sizeof line, "restart of a group by new pods, among %d groups", r->present);
    report_median(line, "ms", &r->restart_among, 150);
    report_costs(b, 1, &r->single);
    report_costs(b, 100, &r->hundred);
    report_costs(b, 1000, &r->thousand);
    report_memory("idle", &r->idle, 16, 6);
    if (r->hundred.ready.n)
        report_memory("peak of 100 groups", &r->peak_hundred, 40, 28);
    if (r->thousand.ready.n)
        report_memory("peak of 1,000 groups", &r->peak_thousand, 40, 28);
    report_memory("when all of them are gone", &r->after, 0, 0);
    report_median("start to ready, no pods", "s", &r->start_empty, 1);
    snprintf(line, sizeof line, "start to ready, %d pods", r->present * GROUP_SIZE);
    report_median(line, "s", &r->start_full, 1);
}

// --- the command line

static _Noreturn void usage(int code)
{
    fprintf(
        code ? stderr : stdout,
        "Usage: bench-groups --kubeconfig FILE --operator PROGRAM [OPTION]...\n"
        "Measures WorkerGroups against bare pinned pods, on a cluster of its own (bench/groups/run.sh).\n"
        "  --namespace NS          where objects are created; it exists; default: bench\n"
        "  --operator-kubeconfig FILE  whom the operator is to the API server; default: as --kubeconfig\n"
        "  --operator-log FILE     default: operator.log\n"
        "  --port N                of the operator's HTTP server; default: 18080\n"
        "  --components PID,...    of the control plane, for its CPU time\n"
        "  --singles N             rounds of one group; default: 10\n"
        "  --pairs N               rounds of 100 groups; default: 3\n"
        "  --thousands N           rounds of 1,000 groups; default: 0\n"
        "  --restarts N            of one group, alone and among others; default: 6\n"
        "  --starts N              of the operator, in an empty and in a full cluster; default: 3\n"
        "  --creates N             rounds of 1,000 creations; default: 3\n"
        "  --placementgroups N     rounds of 100 PlacementGroups of 1 bundle; default: 3\n"
        "  --kiloplacementgroups N rounds of 1,000 PlacementGroups of 3 bundles; default: 0\n"
        "  --parts N               rounds of what each part of a group costs, without an operator; nothing else\n"
        "                          is measured then; default: 0\n"
        "  --placementgroup-parts N\n"
        "                          the same of PlacementGroups of 1 bundle, 100 at once; default: 0\n"
        "  --noise-kubeconfig FILE an account that lists all nodes while PlacementGroups are measured; default: none\n"
        "  --noise-rate N          lists a second; default: 10; 0: without a pause\n"
        "  --noise-at-once N       lists under way at most; default: 32\n");
    exit(code);
}

static int64_t number(const char *text)
{
    int64_t n;
    if (!str_to_i64(text, &n) || n < 0 || n > SAMPLES_MAX * SAMPLES_MAX)
        usage(2);
    return n;
}

static void parse_components(struct world *w, char *list)
{
    for (char *save = NULL, *pid = strtok_r(list, ",", &save); pid && w->n_components < COMPONENTS_MAX - 1;
         pid = strtok_r(NULL, ",", &save))
        w->components[w->n_components++] = (pid_t)strtol(pid, NULL, 10);
}

static void parse(int argc, char **argv, struct settings *s, struct world *w)
{
    enum {
        KUBECONFIG = 1,
        OPERATOR_KUBECONFIG,
        OPERATOR,
        NAMESPACE,
        NOISE_KUBECONFIG,
        LOG,
        PORT,
        SINGLES,
        PAIRS,
        THOUSANDS,
        RESTARTS,
        STARTS,
        CREATIONS,
        PLACEMENTGROUPS,
        KILOPLACEMENTGROUPS,
        PARTS,
        PLACEMENTGROUP_PARTS,
        NOISE_RATE,
        NOISE_AT_ONCE,
        COMPONENTS,
        HELP
    };
    static const struct option options[] = {
        {"kubeconfig", required_argument, NULL, KUBECONFIG},
        {"operator-kubeconfig", required_argument, NULL, OPERATOR_KUBECONFIG},
        {"operator", required_argument, NULL, OPERATOR},
        {"namespace", required_argument, NULL, NAMESPACE},
        {"operator-log", required_argument, NULL, LOG},
        {"port", required_argument, NULL, PORT},
        {"singles", required_argument, NULL, SINGLES},
        {"pairs", required_argument, NULL, PAIRS},
        {"thousands", required_argument, NULL, THOUSANDS},
        {"restarts", required_argument, NULL, RESTARTS},
        {"starts", required_argument, NULL, STARTS},
        {"creates", required_argument, NULL, CREATIONS},
        {"placementgroups", required_argument, NULL, PLACEMENTGROUPS},
        {"kiloplacementgroups", required_argument, NULL, KILOPLACEMENTGROUPS},
        {"noise-kubeconfig", required_argument, NULL, NOISE_KUBECONFIG},
        {"parts", required_argument, NULL, PARTS},
        {"placementgroup-parts", required_argument, NULL, PLACEMENTGROUP_PARTS},
        {"noise-rate", required_argument, NULL, NOISE_RATE},
        {"noise-at-once", required_argument, NULL, NOISE_AT_ONCE},
        {"components", required_argument, NULL, COMPONENTS},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    const char **const texts[] = {
        [KUBECONFIG] = &s->kubeconfig, [OPERATOR_KUBECONFIG] = &s->operator_kubeconfig, [OPERATOR] = &s->program,
        [NAMESPACE] = &s->ns,          [NOISE_KUBECONFIG] = &s->noise_kubeconfig,       [LOG] = &s->log};
    int64_t *const numbers[] = {[PORT] = &s->port,
                                [SINGLES] = &s->singles,
                                [PAIRS] = &s->pairs,
                                [THOUSANDS] = &s->thousands,
                                [RESTARTS] = &s->restarts,
                                [STARTS] = &s->starts,
                                [CREATIONS] = &s->creates,
                                [PLACEMENTGROUPS] = &s->placementgroups,
                                [KILOPLACEMENTGROUPS] = &s->kiloplacementgroups,
                                [PLACEMENTGROUP_PARTS] = &s->placementgroup_parts,
                                [PARTS] = &s->parts,
                                [NOISE_RATE] = &s->noise_rate,
                                [NOISE_AT_ONCE] = &s->noise_at_once};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == HELP || c == '?')
            usage(c == HELP ? 0 : 2);
        if (c == COMPONENTS)
            parse_components(w, optarg);
        else if (c <= LOG)
            *texts[c] = optarg;
        else
            *numbers[c] = number(optarg);
    }
    if (!s->kubeconfig || !s->program || optind != argc)
        usage(2);
}

int main(int argc, char **argv)
{
    struct settings s = {.log = "operator.log",
                         .ns = "bench",
                         .port = 18080,
                         .singles = 10,
                         .pairs = 3,
                         .restarts = 6,
                         .starts = 3,
                         .creates = 3,
                         .placementgroups = 3,
                         .noise_rate = 10,
                         .noise_at_once = 32};
    struct bench b = {0};
    struct results results = {0};
    double load = proc_load();
    parse(argc, argv, &s, &b.world);
    world_open(&b.world, s.kubeconfig, s.ns);
    if (s.parts || s.placementgroup_parts) {
        bench_measure_idle(&b);
        parts_run(&b, (int)s.parts);
        floor_run(&b, (int)s.placementgroup_parts);
        world_close(&b.world);
        return 0;
    }
    b.world.n_components++; // the last one is the operator
    operator_open(&b.operator, b.world.loop,
                  &(struct operator_setup){s.program, s.operator_kubeconfig ? s.operator_kubeconfig : s.kubeconfig,
                                           s.ns, s.log, (int)s.port});
    if (s.noise_kubeconfig)
        b.noise = noise_new(b.world.loop,
                            &(struct noise_options){s.noise_kubeconfig, (int)s.noise_rate, (int)s.noise_at_once});
    run(&b, &s, &results);
    report(&b, &results);
    printf("\nload of the machine: %.1f at the start, %.1f at the end\n", load, proc_load());
    if (b.noise)
        printf("lists of all nodes beside it: %.0f, refused %.0f times\n", noise_lists(b.noise),
               noise_refused(b.noise));
    noise_free(b.noise);
    operator_close(&b.operator);
    world_close(&b.world);
    return 0;
}
