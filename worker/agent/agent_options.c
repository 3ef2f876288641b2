// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent_options.h"

#include "common/base/str.h"
#include "worker/agent/command.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define TOKEN_FILE "/var/run/secrets/cadre.dev/token"

static const char help[] =
    "Usage: cadre-agent [OPTION]... [-- COMMAND [ARG]...]\n"
    "       cadre-agent run [OPTION]... -- COMMAND [ARG]...\n"
    "       cadre-agent install DIRECTORY\n"
    "Starts, watches and stops the worker processes of a pod. It prints their output with [rank N] before each line.\n"
    "\n"
    "Without a subcommand it is the first process of a worker pod and follows the operator's commands. COMMAND is for\n"
    "groups without a command of their own.\n"
    "  --operator URL         wss://HOST:PORT of the operator, all addresses of HOST; default: $CADRE_OPERATOR\n"
    "  --token-file FILE      the pod's token; empty: none; default: " TOKEN_FILE "\n"
    "  --grace SECONDS        between SIGTERM and SIGKILL when the pod ends; default: 25\n"
    "\n"
    "run: runs one group, without an operator; exits with the exit code of the process that failed first.\n"
    "  --processes N          ranks to start, 1 to 1024; default: 1\n"
    "  --attempt N            CADRE_ATTEMPT; default: 0\n"
    "  --master-port PORT     MASTER_PORT; default: a free one\n"
    "  --gpus N               GPUs that each process gets, 0 = none; default: an equal share\n"
    "  --process-gpus LIST    GPUs of each rank, such as \"0;1,2;-\": rank 0 has GPU 0, rank 1 has GPUs 1 and 2,\n"
    "                         rank 2 has none; default: equal shares\n"
    "  --gpu-visibility WHICH own: a process sees only its own GPUs; all: it sees all; default: all\n"
    "  --grace SECONDS        between SIGTERM and SIGKILL; default: 10\n"
    "  --control FD           a SOCK_SEQPACKET socket: reports EXITED and follows KILL, as with an operator\n"
    "\n"
    "install: copies this program to DIRECTORY/cadre-agent, with the files that workers in Python need.\n"
    "\n"
    "  --version              print the version and exit\n"
    "  --help                 print this and exit\n";

enum {
    OPT_PROCESSES = 1,
    OPT_ATTEMPT,
    OPT_PORT,
    OPT_GPUS,
    OPT_PROCESS_GPUS,
    OPT_VISIBILITY,
    OPT_GRACE,
    OPT_CONTROL,
    OPT_OPERATOR,
    OPT_TOKEN,
    OPT_VERSION,
    OPT_HELP
};
enum { GRACE_MAX_S = 24 * 3600, SERVE_GRACE_MS = 25 * 1000, RUN_GRACE_MS = 10 * 1000 };

static const struct option serve_options[] = {
    {"operator", required_argument, NULL, OPT_OPERATOR},
    {"token-file", required_argument, NULL, OPT_TOKEN},
    {"grace", required_argument, NULL, OPT_GRACE},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static const struct option run_options[] = {
    {"processes", required_argument, NULL, OPT_PROCESSES},
    {"attempt", required_argument, NULL, OPT_ATTEMPT},
    {"master-port", required_argument, NULL, OPT_PORT},
    {"gpus", required_argument, NULL, OPT_GPUS},
    {"process-gpus", required_argument, NULL, OPT_PROCESS_GPUS},
    {"gpu-visibility", required_argument, NULL, OPT_VISIBILITY},
    {"grace", required_argument, NULL, OPT_GRACE},
    {"control", required_argument, NULL, OPT_CONTROL},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static const struct option install_options[] = {
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int wrong(const char *what, const char *value)
{
    fprintf(stderr, "cadre-agent: %s%s%s\nTry 'cadre-agent --help'.\n", what, value ? ": " : "", value ? value : "");
    return OPTIONS_USAGE;
}

static int set_number(const char *what, int min, int max, int *ret)
{
    int64_t n;
    if (!str_to_i64(optarg, &n) || n < min || n > max) {
        fprintf(stderr, "cadre-agent: --%s %s: must be a number from %d to %d\n", what, optarg, min, max);
        return OPTIONS_USAGE;
    }
    *ret = (int)n;
    return -1;
}

static int set_grace(struct options *o)
{
    int s = 0, r = set_number("grace", 0, GRACE_MAX_S, &s);
    if (r < 0)
        o->grace_ms = (int64_t)s * 1000;
    return r;
}

static int set_visibility(struct options *o)
{
    if (!str_eq(optarg, "own") && !str_eq(optarg, "all"))
        return wrong("--gpu-visibility must be own or all", optarg);
    o->gpu_visibility = str_eq(optarg, "own") ? GPUS_OWN : GPUS_ALL;
    return -1;
}

static int apply(struct options *o, int opt)
{
    switch (opt) {
    case OPT_PROCESSES:
        return set_number("processes", 1, COMMAND_PROCESSES_MAX, &o->processes);
    case OPT_ATTEMPT:
        return set_number("attempt", 0, INT32_MAX, &o->attempt);
    case OPT_CONTROL:
        return set_number("control", 0, INT32_MAX, &o->control);
    case OPT_PORT:
        return set_number("master-port", 1, 65535, &o->master_port);
    case OPT_GPUS:
        return set_number("gpus", 0, GPUS_MAX, &o->gpus);
    case OPT_PROCESS_GPUS:
        o->process_gpus = optarg;
        return -1;
    case OPT_VISIBILITY:
        return set_visibility(o);
    case OPT_GRACE:
        return set_grace(o);
    case OPT_OPERATOR:
        o->operator_url = optarg;
        return -1;
    case OPT_TOKEN:
        o->token_file = optarg[0] ? optarg : NULL;
        return -1;
    case OPT_VERSION:
        printf("cadre-agent %s\n", CADRE_VERSION);
        return 0;
    case OPT_HELP:
        fputs(help, stdout);
        return 0;
    default: // getopt has said what
        fputs("Try 'cadre-agent --help'.\n", stderr);
        return OPTIONS_USAGE;
    }
}

static int finish(struct options *o, char **rest, int n, bool separated)
{
    if (o->mode == OPTIONS_INSTALL) {
        o->dir = n == 1 ? rest[0] : NULL;
        return n == 1 ? -1 : wrong("install needs one directory", NULL);
    }
    if (n > 0 && !separated)
        return wrong("unknown subcommand (a command to run comes after --)", rest[0]);
    if (n == 0 && o->mode == OPTIONS_RUN)
        return wrong("run needs a command, after --", NULL);
    if (n > 0 && !rest[0][0])
        return wrong("the command is empty", NULL);
    if (o->mode == OPTIONS_SERVE && str_empty(o->operator_url))
        return wrong(
            "no operator: --operator, or CADRE_OPERATOR in the environment (worker pods have it), must name it", NULL);
    o->argv = n > 0 ? (const char *const *)rest : NULL;
    return -1;
}

int options_parse(int argc, char **argv, struct options *ret)
{
    bool run = argc > 1 && str_eq(argv[1], "run"), install = argc > 1 && str_eq(argv[1], "install");
    *ret = (struct options){.mode = run       ? OPTIONS_RUN
                                    : install ? OPTIONS_INSTALL
                                              : OPTIONS_SERVE,
                            .operator_url = getenv("CADRE_OPERATOR"),
                            .token_file = TOKEN_FILE,
                            .grace_ms = run ? RUN_GRACE_MS : SERVE_GRACE_MS,
                            .processes = 1,
                            .control = -1,
                            .gpu_visibility = GPUS_ALL,
                            .gpus = GPUS_SHARE};
    const struct option *known = run ? run_options : install ? install_options : serve_options;
    optind = run || install ? 2 : 1;
    for (int opt; (opt = getopt_long(argc, argv, "+", known, NULL)) != -1;) {
        int r = apply(ret, opt);
        if (r >= 0)
            return r;
    }
    return finish(ret, argv + optind, argc - optind, str_eq(argv[optind - 1], "--"));
}
