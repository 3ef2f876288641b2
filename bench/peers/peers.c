// SPDX-License-Identifier: Apache-2.0
// bench-peers: groups of pods by Cadre and by other managers of groups, each beside bare pinned pods of the same run;
// prints a table in Markdown. bench/peers/run.sh sets everything up.
#include "bench/peers/table.h"
#include "bench/peers/trials.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void usage(int code)
{
    fprintf(code ? stderr : stdout,
            "Usage: bench-peers --kubeconfig FILE --system NAME[=PROGRAM] [OPTION]...\n"
            "Measures managers of groups against bare pinned pods, on a cluster of its own (bench/peers/run.sh).\n"
            "  --system NAME[=PROGRAM] bare, lws, jobset or cadre; PROGRAM starts its manager. May be repeated\n"
            "  --namespace NS          where objects are created; it exists; default: bench\n"
            "  --log FILE              of the managers; default: managers.log\n"
            "  --components PID,...    of the control plane, for its CPU time\n"
            "  --groups N              at once; default: 100\n"
            "  --rounds N              of that; default: 2\n"
            "  --singles N             rounds of one group, in each round; default: 4\n"
            "  --restarts N            of one group among all; default: 4\n");
    exit(code);
}

static int number(const char *text)
{
    int64_t n;
    if (!str_to_i64(text, &n) || n < 0 || n > 10000)
        usage(2);
    return (int)n;
}

static void parse_components(struct world *w, char *list)
{
    for (char *save = NULL, *pid = strtok_r(list, ",", &save); pid && w->n_components < COMPONENTS_MAX - 1;
         pid = strtok_r(NULL, ",", &save))
        w->components[w->n_components++] = (pid_t)strtol(pid, NULL, 10);
}

struct settings {
    const char *kubeconfig, *log, *ns;
    struct plan plan;
    struct trials trials[TABLE_SYSTEMS_MAX];
    size_t n_trials;
};

static void parse_system(struct settings *s, char *text)
{
    char *program = strchr(text, '=');
    if (program)
        *program++ = '\0';
    const struct system *system = system_find(text);
    if (!system || !program != !system->port || s->n_trials == TABLE_SYSTEMS_MAX)
        usage(2);
    s->trials[s->n_trials++] = (struct trials){.system = system, .program = program};
}

static void parse(int argc, char **argv, struct settings *s, struct world *w)
{
    enum { KUBECONFIG = 1, NAMESPACE, LOG, GROUPS, ROUNDS, SINGLES, RESTARTS, SYSTEM, COMPONENTS, HELP };
    static const struct option options[] = {
        {"kubeconfig", required_argument, NULL, KUBECONFIG},
        {"namespace", required_argument, NULL, NAMESPACE},
        {"log", required_argument, NULL, LOG},
        {"groups", required_argument, NULL, GROUPS},
        {"rounds", required_argument, NULL, ROUNDS},
        {"singles", required_argument, NULL, SINGLES},
        {"restarts", required_argument, NULL, RESTARTS},
        {"system", required_argument, NULL, SYSTEM},
        {"components", required_argument, NULL, COMPONENTS},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    const char **const texts[] = {[KUBECONFIG] = &s->kubeconfig, [NAMESPACE] = &s->ns, [LOG] = &s->log};
    int *const numbers[] = {[GROUPS] = &s->plan.groups,
                            [ROUNDS] = &s->plan.rounds,
                            [SINGLES] = &s->plan.singles,
                            [RESTARTS] = &s->plan.restarts};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == HELP || c == '?')
            usage(c == HELP ? 0 : 2);
        if (c == COMPONENTS)
            parse_components(w, optarg);
        else if (c == SYSTEM)
            parse_system(s, optarg);
        else if (c <= LOG)
            *texts[c] = optarg;
        else
            *numbers[c] = number(optarg);
    }
    if (!s->kubeconfig || !s->n_trials || !s->plan.groups || !s->plan.rounds || optind != argc)
        usage(2);
}

int main(int argc, char **argv)
{
    static struct bench b;
    static struct settings s = {.log = "managers.log", .ns = "bench", .plan = {100, 2, 4, 4}};
    struct idle idle;
    double load = proc_load();
    parse(argc, argv, &s, &b.world);
    b.world.n_components++; // the last one is the manager
    world_open(&b.world, s.kubeconfig, s.ns);
    trials_begin(&b, &s.plan, &idle);
    for (int round = 0; round < s.plan.rounds; round++)
        for (size_t i = 0; i < s.n_trials; i++) {
            s.trials[i].log = s.log;
            trials_run(&b, &s.plan, round, &idle, &s.trials[i]);
        }
    table_print(&b.world, &s.plan, s.trials, s.n_trials);
    printf("\nLoad of the machine: %.1f at the start, %.1f at the end (average of a minute; the benchmark itself makes"
           " about 2).\n",
           load, proc_load());
    world_close(&b.world);
    return 0;
}
