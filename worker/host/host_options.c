// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_options.h"

#include "common/base/mem.h"
#include "common/base/option.h"
#include "common/base/str.h"
#include "common/ws/ws_replicas.h"
#include "worker/collective/comm.h"
#include "worker/host/arg_refs.h"
#include "worker/host/host_session_config.h"
#include "worker/host/object_store.h"
#include "worker/host/rank_watch.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

static const char help[] =
    "Usage: cadre-worker --module FILE [OPTION]...\n"
    "Serves one object of a module's class: one rank of a WorkerGroup. cadre-agent starts it.\n"
    "\n"
    "  --module FILE   the shared object; default: $CADRE_MODULE\n"
    "  --class NAME    its class; default: $CADRE_CLASS, else the only one\n"
    "  --init JSON     JSON for the constructor; default: $CADRE_INIT, else {}\n"
    "  --roles JSON    several classes, instead of --class and --init; default: $CADRE_ROLES:\n"
    "                  [{\"name\": ..., \"class\": ..., \"init\": {...}}, ...]\n"
    "  --connect URL   proxy to serve: unix:/path, ws://host:port[/path] or wss://...; up to 16 times;\n"
    "                  default: $CADRE_CONNECT (with commas between several), else every replica of the "
    "operator\n"
    "                  at $CADRE_OPERATOR (wss://host:port), at each address of the name\n"
    "  --describe      print the class and its methods as JSON, and exit\n"
    "  --version       print the version and exit\n"
    "  --help          print this and exit\n"
    "\n"
    "Rank and place come from RANK, WORLD_SIZE, LOCAL_RANK and CADRE_DEVICE, the identity from CADRE_GROUP_UID,\n"
    "CADRE_ATTEMPT, CADRE_TICKET and CADRE_CA. Arguments of waiting calls have at most CADRE_CALL_BYTES (2 GiB).\n"
    "Kept objects have at most CADRE_STORE_BYTES (1 GiB), those that one call refers to CADRE_REFERENCE_BYTES (256\n"
    "MiB); other workers fetch them at port CADRE_OBJECTS_PORT plus LOCAL_RANK (default: a free port).\n"
    "Exit codes: 0 stopped by SIGTERM, 64 wrong usage, 65 the module does not load or has no such class, 66 the\n"
    "constructor failed, 67 the GPU is lost to this process; the last line on stderr gives the reason.\n";

static const char *set_connect(void *options, const char *url)
{
    static const char wrong_url[] = "must be unix:/path, ws://host:port[/path] or wss://host:port[/path]";
    struct host_options *o = options;
    if (o->n_connect == HOST_OPTIONS_CONNECT_MAX)
        return "at most 16 proxies can be served at a time";
    struct host_options_address *a = &o->connect[o->n_connect];
    const char *address = url;
    a->tls = str_starts(url, "wss://");
    if (!str_starts(url, "unix:/")) {
        if (!a->tls && !str_starts(url, "ws://"))
            return wrong_url;
        address = strstr(url, "://") + 3;
    }
    size_t len = address == url ? strlen(url) : strcspn(address, "/");
    const char *path = address[len] ? address + len : WS_REPLICAS_PATH;
    if (len == 0 || len >= sizeof a->address || strlen(path) >= sizeof a->path)
        return wrong_url;
    snprintf(a->address, sizeof a->address, "%.*s", (int)len, address);
    snprintf(a->path, sizeof a->path, "%s", path);
    o->n_connect++;
    return NULL;
}

static const struct option_row rows[] = {
    {"module", OPTION_TEXT, offsetof(struct host_options, module)},
    {"class", OPTION_TEXT, offsetof(struct host_options, class)},
    {"init", OPTION_TEXT, offsetof(struct host_options, init)},
    {"roles", OPTION_TEXT, offsetof(struct host_options, roles)},
    {"connect", OPTION_SET, .set = set_connect},
    {"describe", OPTION_FLAG, offsetof(struct host_options, describe)},
    {0},
};

static const struct option_program program = {"cadre-worker", help, rows, EX_USAGE, .last_line = true};

static int wrong(const char *what, const char *value, const char *wanted)
{
    return option_wrong(&program, what, value, wanted);
}

static int add_connects(struct host_options *o, const char *urls)
{
    while (*urls) {
        size_t len = strcspn(urls, ",");
        _cleanup_(free_p) char *url = xasprintf("%.*s", (int)len, urls);
        const char *why = set_connect(o, url);
        if (why)
            return wrong("--connect", url, why);
        urls += len + (urls[len] == ',');
    }
    return -1;
}

static const char *env_of(const char *name)
{
    const char *v = getenv(name);
    return str_empty(v) ? NULL : v;
}

static void take_ticket(struct host_options *o)
{
    const char *ticket = env_of("CADRE_TICKET");
    o->ticket = ticket ? xstrdup(ticket) : NULL;
    unsetenv("CADRE_TICKET");
}

static int read_number(const char *name, int64_t min, int64_t max, int64_t *ret)
{
    const char *text = env_of(name);
    char what[64];
    if (!text || (str_to_i64(text, ret) && *ret >= min && *ret <= max))
        return -1;
    snprintf(what, sizeof what, "must be a number from %lld to %lld", (long long)min, (long long)max);
    _cleanup_(free_p) char *where = xasprintf("environment: %s", name);
    return wrong(where, text, what);
}

// Each process of a pod has its own port.
static int set_objects(struct host_options *o)
{
    int64_t store = STORE_BYTES_DEFAULT, call = (int64_t)SESSION_BYTES_DEFAULT, port = 0, local_rank = 0;
    int64_t reference = (int64_t)ARG_REFS_BYTES_DEFAULT, silence_s = RANK_WATCH_SILENCE_S;
    const struct {
        const char *name;
        int64_t min, max, *value;
    } numbers[] = {
        {"CADRE_STORE_BYTES", 0, INT64_MAX / 2, &store},
        {"CADRE_OBJECTS_PORT", 1, UINT16_MAX, &port},
        {"LOCAL_RANK", 0, UINT16_MAX, &local_rank},
        {"CADRE_CALL_BYTES", 1 << 20, INT64_MAX / 2, &call},
        {"CADRE_REFERENCE_BYTES", 0, INT64_MAX / 2, &reference},
        {"CADRE_SILENCE_SECONDS", 0, INT32_MAX / 1000, &silence_s},
        {"CADRE_COLLECTIVE_LIMIT_MS", 1, INT32_MAX, &o->collective_ms},
    };
    o->collective_ms = COMM_LIMIT_MS;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        int r = read_number(numbers[i].name, numbers[i].min, numbers[i].max, numbers[i].value);
        if (r >= 0)
            return r;
    }
    if (port && port + local_rank > UINT16_MAX)
        return wrong("environment: CADRE_OBJECTS_PORT", env_of("CADRE_OBJECTS_PORT"),
                     "there is no port that is LOCAL_RANK above it");
    o->store_bytes = (size_t)store;
    o->call_bytes = (size_t)call;
    o->reference_bytes = (size_t)reference;
    o->silence_ms = silence_s * 1000;
    o->objects_port = port ? (int)(port + local_rank) : 0;
    return -1;
}

static int check(struct host_options *o, const char *urls)
{
    const char *attempt = env_of("CADRE_ATTEMPT");
    if (attempt && (!str_to_i64(attempt, &o->attempt) || o->attempt < 0))
        return wrong("environment: CADRE_ATTEMPT", attempt, "must be a number from 0");
    if (!o->module)
        return wrong("--module", "is missing", "which shared object?");
    if (o->roles && (o->class || o->init))
        return wrong("--roles", "with --class or --init", "each role has a class and an init of its own");
    int objects = set_objects(o);
    if (objects >= 0)
        return objects;
    if (!o->n_connect && urls) {
        int r = add_connects(o, urls);
        if (r >= 0)
            return r;
    }
    if (!o->n_connect && !o->operator_url && !o->describe)
        return wrong("--connect", "is missing", "no proxy to serve: set --connect, CADRE_CONNECT or CADRE_OPERATOR");
    return -1;
}

static void read_environment(struct host_options *ret)
{
    *ret = (struct host_options){
        .module = env_of("CADRE_MODULE"),
        .class = env_of("CADRE_CLASS"),
        .init = env_of("CADRE_INIT"),
        .roles = env_of("CADRE_ROLES"),
        .ca_pem = env_of("CADRE_CA"),
        .group = env_of("CADRE_GROUP_UID"),
        .operator_url = env_of("CADRE_OPERATOR"),
    };
    take_ticket(ret);
}

int host_options_read(struct host_options *ret, const char *module, const char *connect)
{
    read_environment(ret);
    ret->module = module;
    ret->class = ret->init = ret->roles = NULL; // the program has read them
    return check(ret, connect ? connect : env_of("CADRE_CONNECT"));
}

int host_options_parse(int argc, char **argv, struct host_options *ret)
{
    read_environment(ret);
    int r = option_parse(&program, argc, argv, ret);
    if (r >= 0)
        return r;
    if (optind < argc)
        return wrong("unexpected argument", argv[optind], "try 'cadre-worker --help'");
    return check(ret, env_of("CADRE_CONNECT"));
}
