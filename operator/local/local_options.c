// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_options.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/local/nodes.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static const char help[] =
    "Usage: cadre-local [OPTION]... -- COMMAND [ARG]...\n"
    "   or: cadre-local [OPTION]... -f FILE\n"
    "   or: cadre-local [OPTION]... --serve\n"
    "Runs groups of worker processes on this machine, without Kubernetes, and a proxy that takes calls for them. Use\n"
    "it to try modules, for tests and for measurements. Only you may call: the socket is yours, and a port needs a\n"
    "token.\n"
    "\n"
    "  --listen ADDRESS        unix:/path, 127.0.0.1:PORT or [::1]:PORT; default: a socket in $XDG_RUNTIME_DIR/cadre,\n"
    "                          else in /tmp/cadre-UID, where kubectl cadre finds it. The token for a port is in the\n"
    "                          file GROUP.NAMESPACE.token there\n"
    "  -f, --filename FILE     a WorkerGroup as for kubectl apply; - is standard input. Its command, environment,\n"
    "                          number of ranks and restarts apply; fields about pods have no effect\n"
    "  --map PREFIX=DIRECTORY  maps a path of the image to a directory of this machine\n"
    "  --group NAME            name of the group; if FILE has several, the one to run; default: FILE's, else local\n"
    "  --namespace NS          its namespace; default: FILE's, else default\n"
    "  --processes N           ranks, 1 to 1024; default: 1\n"
    "  --serve                 start without a group; programs create any number with group.create\n"
    "  --nodes N               with --serve: logical nodes, 1 to 256; default: 1\n"
    "  --gpus N                with --serve: GPUs per node, 0 to 256, for the planner; the machine need not have "
    "them;\n"
    "                          default: 0\n"
    "  --cpus N                with --serve: CPUs per node, for the planner; default: CPUs of this machine\n"
    "  --with-parent           end with the program that started this one\n"
    "  --no-shared-memory      send long arguments and results through the socket\n"
    "  --no-spin               the proxy sleeps at once, instead of polling for up to 100 us first\n"
    "  --agent FILE            cadre-agent, which starts the processes; default: cadre-agent in PATH\n"
    "  --version               print the version and exit\n"
    "  --help                  print this and exit\n"
    "\n"
    "COMMAND runs once per rank, for example cadre-worker --module FILE. Ctrl-C ends all ranks; a second one kills\n"
    "them. Exit codes: the first failed process's own, 0 if none failed, 64 wrong usage, 65 unusable file, 69 cannot\n"
    "listen, 127 no cadre-agent.\n";

enum {
    OPT_LISTEN = 1,
    OPT_FILE,
    OPT_MAP,
    OPT_GROUP,
    OPT_NAMESPACE,
    OPT_PROCESSES,
    OPT_AGENT,
    OPT_SERVE,
    OPT_NODES,
    OPT_GPUS,
    OPT_CPUS,
    OPT_PARENT,
    OPT_PLAIN,
    OPT_SLEEPS,
    OPT_VERSION,
    OPT_HELP
};

static const struct option table[] = {
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"filename", required_argument, NULL, OPT_FILE},
    {"map", required_argument, NULL, OPT_MAP},
    {"group", required_argument, NULL, OPT_GROUP},
    {"namespace", required_argument, NULL, OPT_NAMESPACE},
    {"processes", required_argument, NULL, OPT_PROCESSES},
    {"agent", required_argument, NULL, OPT_AGENT},
    {"serve", no_argument, NULL, OPT_SERVE},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"gpus", required_argument, NULL, OPT_GPUS},
    {"cpus", required_argument, NULL, OPT_CPUS},
    {"with-parent", no_argument, NULL, OPT_PARENT},
    {"no-shared-memory", no_argument, NULL, OPT_PLAIN},
    {"no-spin", no_argument, NULL, OPT_SLEEPS},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int wrong(const char *what, const char *value, const char *wanted)
{
    fprintf(stderr, "cadre-local: %s %s: %s\nTry 'cadre-local --help'.\n", what, value, wanted);
    return EX_USAGE;
}

// There is no TLS, so a port is for this machine.
static int set_listen(struct options *o)
{
    if (!str_starts(optarg, "127.0.0.1:") && !str_starts(optarg, "[::1]:") && !str_starts(optarg, "unix:/"))
        return wrong("--listen", optarg, "must be 127.0.0.1:PORT, [::1]:PORT or unix:/path");
    o->listen = optarg;
    return -1;
}

static int set_map(struct options *o)
{
    const char *sep = strchr(optarg, '=');
    if (!sep || sep == optarg || optarg[0] != '/' || !sep[1])
        return wrong("--map", optarg, "must be PREFIX=DIRECTORY, such as /modules=build/examples");
    o->map = optarg;
    return -1;
}

static int set_number(const char *option, int min, int max, int *ret)
{
    int64_t n;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "must be a number from %d to %d", min, max);
    if (!str_to_i64(optarg, &n) || n < min || n > max)
        return wrong(option, optarg, wanted);
    *ret = (int)n;
    return -1;
}

static int apply(struct options *o, int opt)
{
    switch (opt) {
    case OPT_LISTEN:
        return set_listen(o);
    case OPT_FILE:
    case 'f':
        o->file = optarg;
        return -1;
    case OPT_MAP:
        return set_map(o);
    case OPT_GROUP:
        o->group = optarg;
        return -1;
    case OPT_NAMESPACE:
        o->ns = optarg;
        return -1;
    case OPT_PROCESSES:
        return set_number("--processes", 1, OPTIONS_PROCESSES_MAX, &o->processes);
    case OPT_SERVE:
        o->serve = true;
        return -1;
    case OPT_NODES:
        return set_number("--nodes", 1, NODES_MAX, &o->nodes);
    case OPT_GPUS:
        return set_number("--gpus", 0, NODES_GPUS_MAX, &o->gpus);
    case OPT_CPUS:
        return set_number("--cpus", 1, NODES_CPUS_MAX, &o->cpus);
    case OPT_PARENT:
        o->with_parent = true;
        return -1;
    case OPT_AGENT:
        o->agent = optarg;
        return -1;
    case OPT_PLAIN:
        o->plain = true;
        return -1;
    case OPT_SLEEPS:
        o->sleeps = true;
        return -1;
    case OPT_VERSION:
        printf("cadre-local %s\n", CADRE_VERSION);
        return 0;
    case OPT_HELP:
        fputs(help, stdout);
        return 0;
    default: // getopt has said what
        fputs("Try 'cadre-local --help'.\n", stderr);
        return EX_USAGE;
    }
}

// What is said twice, or not at all.
static int check(const struct options *o, bool command)
{
    if (o->serve && (o->file || command || o->processes))
        return wrong("--serve", "with a group", "it starts without a group: leave out -f, --processes and the command");
    if (!o->serve && (o->nodes || o->gpus || o->cpus))
        return wrong(o->nodes  ? "--nodes"
                     : o->gpus ? "--gpus"
                               : "--cpus",
                     "without --serve", "it is for groups that programs make");
    if (!o->serve && !o->file && !command)
        return wrong("the command", "is missing", "name the command for each rank after --, or a file with -f FILE");
    if (o->file && command)
        return wrong("-f", o->file, "says what to run; leave out the command after --");
    if (o->file && o->processes)
        return wrong("--processes", "with -f", "the file says the number of ranks");
    if (!o->file && !o->serve && o->map)
        return wrong("--map", o->map, "is about the paths in a file, -f FILE, or of --serve");
    return -1;
}

int options_parse(int argc, char **argv, struct options *ret)
{
    *ret = (struct options){.agent = "cadre-agent"};
    for (int opt; (opt = getopt_long(argc, argv, "+f:", table, NULL)) != -1;) {
        int r = apply(ret, opt);
        if (r >= 0)
            return r;
    }
    bool command = optind < argc;
    if (command && !str_eq(argv[optind - 1], "--"))
        return wrong("the command", argv[optind], "comes after --");
    int r = check(ret, command);
    ret->command = command ? argv + optind : NULL;
    ret->nodes = MAX(ret->nodes, 1);
    ret->cpus = ret->cpus ? ret->cpus : (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
    ret->processes = MAX(ret->processes, 1);
    return r;
}
