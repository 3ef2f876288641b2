// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_options.h"

#include "common/base/mem.h"
#include "common/base/option.h"
#include "common/base/str.h"
#include "operator/local/manifest.h"
#include "operator/local/nodes.h"

#include <getopt.h>
#include <limits.h>
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
    "  --with-parent PID       end with the process PID, which has started this one\n"
    "  --no-shared-memory      send long arguments and results through the socket\n"
    "  --no-spin               the proxy sleeps at once, instead of polling for up to 100 us first\n"
    "  --agent FILE            cadre-agent, which starts the processes; default: cadre-agent in PATH\n"
    "  --version               print the version and exit\n"
    "  --help                  print this and exit\n"
    "\n"
    "COMMAND runs once per rank, for example cadre-worker --module FILE. Ctrl-C ends all ranks; a second one kills\n"
    "them. Exit codes: the first failed process's own, 0 if none failed, 64 wrong usage, 65 unusable file, 69 cannot\n"
    "listen, 127 no cadre-agent.\n";

// There is no TLS, so a port is only for this machine.
static const char *set_listen(void *options, const char *value)
{
    if (!str_starts(value, "127.0.0.1:") && !str_starts(value, "[::1]:") && !str_starts(value, "unix:/"))
        return "must be 127.0.0.1:PORT, [::1]:PORT or unix:/path";
    ((struct local_options *)options)->listen = value;
    return NULL;
}

static const char *set_map(void *options, const char *value)
{
    const char *sep = strchr(value, '=');
    if (!sep || sep == value || value[0] != '/' || !sep[1])
        return "must be PREFIX=DIRECTORY, such as /modules=build/examples";
    ((struct local_options *)options)->map = value;
    return NULL;
}

static const struct option_row rows[] = {
    {"listen", OPTION_SET, .set = set_listen},
    {"filename", OPTION_TEXT, offsetof(struct local_options, file), .letter = 'f'},
    {"map", OPTION_SET, .set = set_map},
    {"group", OPTION_TEXT, offsetof(struct local_options, group)},
    {"namespace", OPTION_TEXT, offsetof(struct local_options, ns)},
    {"processes", OPTION_NUMBER, offsetof(struct local_options, processes), 1, MANIFEST_PROCESSES_MAX},
    {"agent", OPTION_TEXT, offsetof(struct local_options, agent)},
    {"serve", OPTION_FLAG, offsetof(struct local_options, serve)},
    {"nodes", OPTION_NUMBER, offsetof(struct local_options, nodes), 1, NODES_MAX},
    {"gpus", OPTION_NUMBER, offsetof(struct local_options, gpus), 0, NODES_GPUS_MAX},
    {"cpus", OPTION_NUMBER, offsetof(struct local_options, cpus), 1, NODES_CPUS_MAX},
    {"with-parent", OPTION_NUMBER, offsetof(struct local_options, with_parent), 1, INT_MAX},
    {"no-shared-memory", OPTION_FLAG, offsetof(struct local_options, plain)},
    {"no-spin", OPTION_FLAG, offsetof(struct local_options, sleeps)},
    {0},
};

static const struct option_program program = {"cadre-local", help, rows, EX_USAGE};

static int wrong(const char *what, const char *value, const char *wanted)
{
    return option_wrong(&program, what, value, wanted);
}

// Checks for options that contradict each other, and for missing ones.
static int check(const struct local_options *o, bool command)
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

int local_options_parse(int argc, char **argv, struct local_options *ret)
{
    *ret = (struct local_options){.agent = "cadre-agent"};
    int r = option_parse(&program, argc, argv, ret);
    if (r >= 0)
        return r;
    bool command = optind < argc;
    if (command && !str_eq(argv[optind - 1], "--"))
        return wrong("the command", argv[optind], "comes after --");
    r = check(ret, command);
    ret->command = command ? argv + optind : NULL;
    ret->nodes = MAX(ret->nodes, 1);
    ret->cpus = ret->cpus ? ret->cpus : (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
    ret->processes = MAX(ret->processes, 1);
    return r;
}
