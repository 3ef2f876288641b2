// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent_options.h"

#include "common/base/option.h"
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
    "  --control FD           a SOCK_SEQPACKET socket: reports EXITED and STOPPED, and follows KILL, PREPARE, which\n"
    "                         begins a newer attempt, and STOP, as with an operator\n"
    "\n"
    "install: copies this program to DIRECTORY/cadre-agent, with the files that workers in Python need.\n"
    "\n"
    "  --version              print the version and exit\n"
    "  --help                 print this and exit\n";

enum { GRACE_MAX_S = 24 * 3600, SERVE_GRACE_MS = 25 * 1000, RUN_GRACE_MS = 10 * 1000 };

static const char *set_grace(void *options, const char *value)
{
    int64_t s;
    if (!str_to_i64(value, &s) || s < 0 || s > GRACE_MAX_S)
        return "must be a number from 0 to 86400";
    ((struct agent_options *)options)->grace_ms = s * 1000;
    return NULL;
}

static const char *set_visibility(void *options, const char *value)
{
    ((struct agent_options *)options)->gpu_visibility = str_eq(value, "own") ? GPUS_OWN : GPUS_ALL;
    return str_eq(value, "own") || str_eq(value, "all") ? NULL : "must be own or all";
}

static const char *set_token_file(void *options, const char *value)
{
    ((struct agent_options *)options)->token_file = value[0] ? value : NULL;
    return NULL;
}

static const struct option_row rows[][9] = {
    [AGENT_OPTIONS_SERVE] = {{"operator", OPTION_TEXT, offsetof(struct agent_options, operator_url)},
                             {"token-file", OPTION_SET, .set = set_token_file},
                             {"grace", OPTION_SET, .set = set_grace}},
    [AGENT_OPTIONS_RUN] = {{"processes", OPTION_NUMBER, offsetof(struct agent_options, processes), 1,
                            COMMAND_PROCESSES_MAX},
                           {"attempt", OPTION_NUMBER, offsetof(struct agent_options, attempt), 0, INT32_MAX},
                           {"master-port", OPTION_NUMBER, offsetof(struct agent_options, master_port), 1, 65535},
                           {"gpus", OPTION_NUMBER, offsetof(struct agent_options, gpus), 0, GPUS_MAX},
                           {"process-gpus", OPTION_TEXT, offsetof(struct agent_options, process_gpus)},
                           {"gpu-visibility", OPTION_SET, .set = set_visibility},
                           {"grace", OPTION_SET, .set = set_grace},
                           {"control", OPTION_NUMBER, offsetof(struct agent_options, control), 0, INT32_MAX}},
    [AGENT_OPTIONS_INSTALL] = {{0}},
};

static int wrong(const char *what, const char *value)
{
    fprintf(stderr, "cadre-agent: %s%s%s\nTry 'cadre-agent --help'.\n", what, value ? ": " : "", value ? value : "");
    return AGENT_OPTIONS_USAGE;
}

static int finish(struct agent_options *o, char **rest, int n, bool separated)
{
    if (o->mode == AGENT_OPTIONS_INSTALL) {
        o->dir = n == 1 ? rest[0] : NULL;
        return n == 1 ? -1 : wrong("install needs one directory", NULL);
    }
    if (n > 0 && !separated)
        return wrong("unknown subcommand (a command to run comes after --)", rest[0]);
    if (n == 0 && o->mode == AGENT_OPTIONS_RUN)
        return wrong("run needs a command, after --", NULL);
    if (n > 0 && !rest[0][0])
        return wrong("the command is empty", NULL);
    if (o->mode == AGENT_OPTIONS_SERVE && str_empty(o->operator_url))
        return wrong(
            "no operator: --operator, or CADRE_OPERATOR in the environment (worker pods have it), must name it", NULL);
    o->argv = n > 0 ? (const char *const *)rest : NULL;
    return -1;
}

int agent_options_parse(int argc, char **argv, struct agent_options *ret)
{
    bool run = argc > 1 && str_eq(argv[1], "run"), install = argc > 1 && str_eq(argv[1], "install");
    *ret = (struct agent_options){.mode = run       ? AGENT_OPTIONS_RUN
                                          : install ? AGENT_OPTIONS_INSTALL
                                                    : AGENT_OPTIONS_SERVE,
                                  .operator_url = getenv("CADRE_OPERATOR"),
                                  .token_file = TOKEN_FILE,
                                  .grace_ms = run ? RUN_GRACE_MS : SERVE_GRACE_MS,
                                  .processes = 1,
                                  .control = -1,
                                  .gpu_visibility = GPUS_ALL,
                                  .gpus = GPUS_SHARE};
    struct option_program program = {"cadre-agent", help, rows[ret->mode], AGENT_OPTIONS_USAGE};
    optind = run || install ? 2 : 1;
    int r = option_parse(&program, argc, argv, ret);
    if (r >= 0)
        return r;
    return finish(ret, argv + optind, argc - optind, str_eq(argv[optind - 1], "--"));
}
