// SPDX-License-Identifier: Apache-2.0
#include "bench/calls/options.h"

#include "bench/lib/samples.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

static const char help[] =
    "Usage: bench-calls --worker CADRE-WORKER --module ECHO.SO [OPTION]...\n"
    "       bench-calls --server ADDRESS --group NAME --method METHOD [OPTION]...\n"
    "Measures calls: all kinds, with a proxy and workers of its own; or one kind, of a proxy that runs, whose line is\n"
    "calls a second and the median in microseconds.\n"
    "\n"
    "  --seconds N          of each measurement; default: 1\n"
    "  --rounds N           default: 3; the median counts\n"
    "  --idle N             most idle workers; default: 10000\n"
    "  --only TEXT          only lines with this in their name\n"
    "  --ray-python FILE    a Python that has Ray\n"
    "  --ray-script FILE    ray_peer.py\n"
    "  --client-python FILE a Python for our package, which it must find\n"
    "  --client-script FILE python_client.py\n"
    "  --server ADDRESS     ws://HOST:PORT or unix:/PATH\n"
    "  --namespace NS       of the group; default: default\n"
    "  --args JSON          default: []\n"
    "  --in-flight N        default: 1\n";

enum {
    OPT_WORKER = 1,
    OPT_MODULE,
    OPT_PYTHON,
    OPT_SCRIPT,
    OPT_CLIENT_PYTHON,
    OPT_CLIENT_SCRIPT,
    OPT_SECONDS,
    OPT_ROUNDS,
    OPT_IDLE,
    OPT_ONLY,
    OPT_SERVER,
    OPT_NAMESPACE,
    OPT_GROUP,
    OPT_METHOD,
    OPT_ARGS,
    OPT_IN_FLIGHT,
};

static const struct option table[] = {
    {"worker", required_argument, NULL, OPT_WORKER},
    {"module", required_argument, NULL, OPT_MODULE},
    {"ray-python", required_argument, NULL, OPT_PYTHON},
    {"ray-script", required_argument, NULL, OPT_SCRIPT},
    {"client-python", required_argument, NULL, OPT_CLIENT_PYTHON},
    {"client-script", required_argument, NULL, OPT_CLIENT_SCRIPT},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"idle", required_argument, NULL, OPT_IDLE},
    {"only", required_argument, NULL, OPT_ONLY},
    {"server", required_argument, NULL, OPT_SERVER},
    {"namespace", required_argument, NULL, OPT_NAMESPACE},
    {"group", required_argument, NULL, OPT_GROUP},
    {"method", required_argument, NULL, OPT_METHOD},
    {"args", required_argument, NULL, OPT_ARGS},
    {"in-flight", required_argument, NULL, OPT_IN_FLIGHT},
    {NULL, 0, NULL, 0},
};

// Where the text of an option goes; NULL for options that are numbers.
static const char **text_of(struct options *o, int opt)
{
    const char **const texts[] = {
        [OPT_WORKER] = &o->worker,
        [OPT_MODULE] = &o->module,
        [OPT_PYTHON] = &o->python,
        [OPT_SCRIPT] = &o->ray_script,
        [OPT_CLIENT_PYTHON] = &o->client_python,
        [OPT_CLIENT_SCRIPT] = &o->client_script,
        [OPT_ONLY] = &o->only,
        [OPT_SERVER] = &o->server,
        [OPT_NAMESPACE] = &o->ns,
        [OPT_GROUP] = &o->group,
        [OPT_METHOD] = &o->method,
        [OPT_ARGS] = &o->args,
    };
    return (size_t)opt < ARRAY_LEN(texts) ? texts[opt] : NULL;
}

static bool set_number(struct options *o, int opt)
{
    char *end;
    double v = strtod(optarg, &end);
    if (*end || !(v >= 0 && v <= 1e6))
        return false;
    if (opt == OPT_SECONDS)
        o->seconds = v;
    else if (opt == OPT_ROUNDS)
        o->rounds = (int)MIN(MAX(v, 1), SAMPLES_MAX);
    else if (opt == OPT_IDLE)
        o->idle = (unsigned)v;
    else
        o->in_flight = (unsigned)MAX(v, 1);
    return true;
}

static bool complete(const struct options *o)
{
    if (o->server)
        return o->group && o->method;
    return o->worker && o->module && !o->python == !o->ray_script && !o->client_python == !o->client_script;
}

int options_parse(int argc, char **argv, struct options *ret)
{
    *ret =
        (struct options){.seconds = 1, .rounds = 3, .idle = 10 * 1000, .ns = "default", .args = "[]", .in_flight = 1};
    bool good = true;
    for (int opt; good && (opt = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        const char **text = opt == '?' ? NULL : text_of(ret, opt);
        if (text)
            *text = optarg;
        good = opt != '?' && (text || set_number(ret, opt));
    }
    if (good && optind == argc && complete(ret))
        return -1;
    fputs(help, stderr);
    return EX_USAGE;
}
