// SPDX-License-Identifier: Apache-2.0
// bench-groups: WorkerGroups through the operator against bare pods that this program creates itself, pinned to the
// same nodes, in turns on the same cluster; and what the operator costs. README.md says how to read the table.
#include "bench/groups/operator.h"
#include "bench/groups/raw.h"
#include "bench/groups/report.h"
#include "bench/groups/world.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 64, WAIT_S = 300, CREATES = 1000, STATUS_SETTLES_MS = 3000, IDLE_MS = 2000 };

struct settings {
    const char *kubeconfig, *program, *log, *ns;
    int64_t port, singles, pairs, restarts, thousands;
};

// What one size of load showed: a value a trial, of the floor and of ours.
struct contest {
    struct samples floor_seen, floor_running, floor_cpu;
    struct samples seen, running, ready, cpu, operator_cpu;
    struct samples requests, posts, patches, errors, reconciles; // a group
};

struct bench {
    struct settings settings;
    struct world world;
    struct operator operator;
    int trials; // so far: the number in the next one's names
};

static double ms_since(const struct world *w, int64_t us)
{
    return (double)(us - w->trial.began_us) / 1e3;
}

static const char *next_prefix(struct bench *b, char *prefix, size_t size, const char *kind)
{
    snprintf(prefix, size, "%s%d-", kind, ++b->trials);
    return prefix;
}

static double all_cpu_s(const struct bench *b)
{
    return world_cpu_s(&b->world) + proc_cpu_s(b->operator.pid);
}

// --- trials

static void bare_trial(struct bench *b, int pods, struct contest *c)
{
    struct world *w = &b->world;
    char prefix[PREFIX_MAX];
    double cpu = all_cpu_s(b);
    world_create_pods(w, next_prefix(b, prefix, sizeof prefix, "bare"), pods, true);
    world_wait(w, &w->trial.running_us, WAIT_S, "bare pods");
    samples_add(&c->floor_seen, ms_since(w, w->trial.seen_us));
    samples_add(&c->floor_running, ms_since(w, w->trial.running_us));
    world_quiesce(w, b->operator.pid);
    samples_add(&c->floor_cpu, all_cpu_s(b) - cpu);
    world_clean(w, prefix, b->operator.pid);
}

// Leaves the groups there.
static void group_trial(struct bench *b, const char *prefix, int groups, struct contest *c)
{
    struct world *w = &b->world;
    struct operator_counters before = operator_counters(&b->operator);
    double cpu = all_cpu_s(b), own_cpu = proc_cpu_s(b->operator.pid);
    world_create_groups(w, prefix, groups);
    world_wait(w, &w->trial.running_us, WAIT_S, "pods of groups");
    world_wait(w, &w->trial.ready_us, WAIT_S, "Ready groups");
    samples_add(&c->seen, ms_since(w, w->trial.seen_us));
    samples_add(&c->running, ms_since(w, w->trial.running_us));
    samples_add(&c->ready, ms_since(w, w->trial.ready_us));
    world_quiesce(w, b->operator.pid);
    samples_add(&c->cpu, all_cpu_s(b) - cpu);
    samples_add(&c->operator_cpu, proc_cpu_s(b->operator.pid) - own_cpu);
    world_sleep(w, STATUS_SETTLES_MS);
    struct operator_counters after = operator_counters(&b->operator);
    samples_add(&c->requests, (after.requests - before.requests) / groups);
    samples_add(&c->posts, (after.posts - before.posts) / groups);
    samples_add(&c->patches, (after.patches - before.patches) / groups);
    samples_add(&c->errors, (after.errors - before.errors) / groups);
    samples_add(&c->reconciles, (after.reconciles - before.reconciles) / groups);
}

static void contest_run(struct bench *b, int groups, int pairs, struct contest *c)
{
    char prefix[PREFIX_MAX];
    for (int i = 0; i < pairs; i++) {
        bare_trial(b, groups * GROUP_SIZE, c);
        group_trial(b, next_prefix(b, prefix, sizeof prefix, "group"), groups, c);
        world_clean(&b->world, prefix, b->operator.pid);
        fprintf(stderr, "bench-groups: %d x %d pods, pair %d: bare %.0f ms, groups %.0f ms (load %.1f)\n", groups,
                GROUP_SIZE, i + 1, c->floor_running.values[i], c->running.values[i], proc_load());
    }
}

// One of the pods of a running group is deleted: time until eight new ones run.
static void restart_run(struct bench *b, const char *group, int times, struct samples *ret)
{
    struct world *w = &b->world;
    struct arena a = ARENA_INIT;
    const char *prefix = arena_printf(&a, "%s-", group);
    for (int i = 0; i < times; i++) {
        const struct object *const *pods;
        if (store_by_group(w->pods, w->ns, group, &a, &pods) != GROUP_SIZE)
            break; // not what was asked for; the count of samples says so
        world_delete_pod(w, prefix, arena_strdup(&a, pods[GROUP_SIZE / 2]->meta.name), GROUP_SIZE);
        world_wait(w, &w->trial.running_us, WAIT_S, "new pods");
        samples_add(ret, ms_since(w, w->trial.running_us));
        world_sleep(w, STATUS_SETTLES_MS / 2);
        world_quiesce(w, b->operator.pid);
    }
    arena_done(&a);
}

// Pods that nobody schedules, created by our client and by the raw connections.
static void create_run(struct bench *b, struct samples *raw, struct samples *ours)
{
    struct world *w = &b->world;
    struct arena a = ARENA_INIT;
    char prefix[PREFIX_MAX];
    const char *path = arena_printf(&a, "/api/v1/namespaces/%s/pods", w->ns);
    const char **bodies = arena_array(&a, CREATES, sizeof *bodies);
    for (int i = 0; i < 3; i++) {
        next_prefix(b, prefix, sizeof prefix, "raw");
        for (int k = 0; k < CREATES; k++)
            bodies[k] = world_pod_body(w, &a, arena_printf(&a, "%s%d", prefix, k), k, false);
        samples_add(raw, raw_post(&w->config, path, bodies, CREATES, IN_FLIGHT) * 1e6 / CREATES);
        world_clean(w, prefix, b->operator.pid);
        world_create_pods(w, next_prefix(b, prefix, sizeof prefix, "made"), CREATES, false);
        world_wait_answers(w);
        samples_add(ours, (double)(proc_now_us() - w->trial.began_us) / CREATES);
        world_clean(w, prefix, b->operator.pid);
    }
    arena_done(&a);
}

// --- what is said

static void report_contest(const char *size, const struct contest *c)
{
    char what[96];
    bool one = c->running.n && str_starts(size, "1 ");
    snprintf(what, sizeof what, "%s: all Running", size);
    report_pairs(what, "ms", &c->floor_running, &c->running, one ? 1.5 : 1.3);
    if (one) {
        report_number("  p95 of the floor", "ms", samples_quantile(&c->floor_running, 0.95), 0);
        report_number("  p95 of Cadre", "ms", samples_quantile(&c->running, 0.95), 0);
    }
    snprintf(what, sizeof what, "%s: all pods exist", size);
    report_pairs(what, "ms", &c->floor_seen, &c->seen, 0);
    snprintf(what, sizeof what, "%s: condition Ready (floor: Running)", size);
    report_pairs(what, "ms", &c->floor_running, &c->ready, 0);
    if (one)
        return;
    snprintf(what, sizeof what, "%s: CPU of all components", size);
    report_pairs(what, "s", &c->floor_cpu, &c->cpu, 1.4);
}

static void report_costs(const struct contest *c, int groups)
{
    char what[96];
    snprintf(what, sizeof what, "requests a group of %d (at %d groups)", GROUP_SIZE, groups);
    report_number(what, "", samples_median(&c->requests), GROUP_SIZE + 4);
    report_number("  POST", "", samples_median(&c->posts), 0);
    report_number("  PATCH", "", samples_median(&c->patches), 0);
    report_number("  answered with an error", "", samples_median(&c->errors), 0);
    report_number("reconciles a group", "", samples_median(&c->reconciles), 0);
    snprintf(what, sizeof what, "operator CPU for 8,000 pods (from %d)", groups * GROUP_SIZE);
    report_number(what, "s", samples_median(&c->operator_cpu) * 1000 / groups, 4);
}

static void report_memory(const char *when, const struct proc_memory *m, double rss, double anon)
{
    char what[96];
    snprintf(what, sizeof what, "operator memory, %s: RSS", when);
    report_number(what, "MiB", m->rss, rss);
    snprintf(what, sizeof what, "operator memory, %s: anonymous", when);
    report_number(what, "MiB", m->anon, anon);
}

// --- the run

static void start_up(struct bench *b, int times, struct samples *ret)
{
    for (int i = 0; i < times; i++) {
        operator_stop(&b->operator);
        world_quiesce(&b->world, 0);
        samples_add(ret, operator_start(&b->operator));
    }
}

static void run(struct bench *b)
{
    const struct settings *s = &b->settings;
    struct world *w = &b->world;
    struct samples start_empty = {0}, start_full = {0}, restart_alone = {0}, restart_among = {0}, raw = {0}, made = {0};
    struct contest single = {0}, hundred = {0}, thousand = {0};
    char prefix[PREFIX_MAX], group[PREFIX_MAX + 8];

    start_up(b, 3, &start_empty);
    world_sleep(w, IDLE_MS);
    struct proc_memory idle = proc_memory(b->operator.pid);
    contest_run(b, 1, (int)s->singles, &single);

    struct contest warm = {0}; // the groups that stay for what follows
    group_trial(b, next_prefix(b, prefix, sizeof prefix, "group"), 1, &warm);
    snprintf(group, sizeof group, "%s0", prefix);
    restart_run(b, group, (int)s->restarts, &restart_alone);
    world_clean(w, prefix, b->operator.pid);

    contest_run(b, 100, (int)s->pairs, &hundred);
    struct proc_memory peak_hundred = b->operator.peak;
    int present = s->thousands ? 1000 : 100;
    contest_run(b, 1000, (int)s->thousands, &thousand);
    group_trial(b, next_prefix(b, prefix, sizeof prefix, "group"), present, &warm);
    struct proc_memory peak = b->operator.peak;
    snprintf(group, sizeof group, "%s%d", prefix, present / 2);
    restart_run(b, group, (int)s->restarts, &restart_among);
    start_up(b, 3, &start_full);
    world_clean(w, prefix, b->operator.pid);
    create_run(b, &raw, &made);

    report_begin();
    report_contest("1 group of 8", &single);
    report_contest("100 groups of 8", &hundred);
    if (s->thousands)
        report_contest("1,000 groups of 8", &thousand);
    report_pairs("create only, our client (floor: raw connections)", "us/pod", &raw, &made, 1.2);
    report_number("restart of a group by new pods, alone, p50", "ms", samples_median(&restart_alone), 150);
    report_number(present == 1000 ? "the same among 1,000 groups, p50" : "the same among 100 groups, p50", "ms",
                  samples_median(&restart_among), 150);
    report_costs(s->thousands ? &thousand : &hundred, present);
    report_memory("idle", &idle, 16, 6);
    report_memory("peak of 100 groups", &peak_hundred, 40, 28);
    if (s->thousands)
        report_memory("peak of 1,000 groups", &peak, 40, 28);
    report_number("start to ready, empty cluster", "s", samples_median(&start_empty), 1);
    report_number(present == 1000 ? "start to ready, 8,000 pods" : "start to ready, 800 pods", "s",
                  samples_median(&start_full), 1);
}

// --- the command line

static _Noreturn void usage(int code)
{
    fprintf(code ? stderr : stdout,
            "Usage: bench-groups --kubeconfig FILE --operator PROGRAM [OPTION]...\n"
            "Measures WorkerGroups against bare pinned pods, on a cluster of its own (bench/groups/run.sh).\n"
            "  --namespace NS          where objects are created; it exists; default: bench\n"
            "  --operator-log FILE     default: operator.log\n"
            "  --port N                of the operator's HTTP server; default: 18080\n"
            "  --components PID,...    of the control plane, for its CPU time\n"
            "  --singles N             pairs of one group; default: 15\n"
            "  --pairs N               pairs of 100 groups; default: 3\n"
            "  --restarts N            of one group, alone and among others; default: 10\n"
            "  --thousands N           pairs of 1,000 groups; default: 0\n");
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
    for (char *save = NULL, *pid = strtok_r(list, ",", &save); pid && w->n_components < COMPONENTS_MAX;
         pid = strtok_r(NULL, ",", &save))
        w->components[w->n_components++] = (pid_t)strtol(pid, NULL, 10);
}

static void parse(int argc, char **argv, struct bench *b)
{
    enum { KUBECONFIG = 1, OPERATOR, NAMESPACE, LOG, PORT, COMPONENTS, SINGLES, PAIRS, RESTARTS, THOUSANDS, HELP };
    static const struct option options[] = {
        {"kubeconfig", required_argument, NULL, KUBECONFIG},
        {"operator", required_argument, NULL, OPERATOR},
        {"namespace", required_argument, NULL, NAMESPACE},
        {"operator-log", required_argument, NULL, LOG},
        {"port", required_argument, NULL, PORT},
        {"components", required_argument, NULL, COMPONENTS},
        {"singles", required_argument, NULL, SINGLES},
        {"pairs", required_argument, NULL, PAIRS},
        {"restarts", required_argument, NULL, RESTARTS},
        {"thousands", required_argument, NULL, THOUSANDS},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    struct settings *s = &b->settings;
    *s = (struct settings){
        .log = "operator.log", .ns = "bench", .port = 18080, .singles = 15, .pairs = 3, .restarts = 10};
    int64_t *const numbers[] = {[PORT] = &s->port,
                                [SINGLES] = &s->singles,
                                [PAIRS] = &s->pairs,
                                [RESTARTS] = &s->restarts,
                                [THOUSANDS] = &s->thousands};
    const char **const texts[] = {
        [KUBECONFIG] = &s->kubeconfig, [OPERATOR] = &s->program, [NAMESPACE] = &s->ns, [LOG] = &s->log};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == HELP || c == '?')
            usage(c == HELP ? 0 : 2);
        if (c == COMPONENTS)
            parse_components(&b->world, optarg);
        else if (c < (int)ARRAY_LEN(texts) && texts[c])
            *texts[c] = optarg;
        else
            *numbers[c] = number(optarg);
    }
    if (!s->kubeconfig || !s->program || optind != argc)
        usage(2);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    parse(argc, argv, &b);
    const struct settings *s = &b.settings;
    world_open(&b.world, s->kubeconfig, s->ns);
    operator_open(&b.operator, b.world.loop,
                  &(struct operator_options){s->program, s->kubeconfig, s->ns, s->log, (int)s->port});
    double load = proc_load();
    run(&b);
    printf("\nload of the machine: %.1f at the start, %.1f at the end\n", load, proc_load());
    operator_close(&b.operator);
    world_close(&b.world);
    return 0;
}
