// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/operator_options.h"

#include "common/base/mem.h"
#include "common/base/memory_limit.h"
#include "common/base/str.h"
#include "operator/wiring/weights.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: cadre-operator [OPTION]...\n"
    "Places groups of ranked GPU pods (WorkerGroup, cadre.dev/v1alpha1) on a Kubernetes cluster.\n"
    "\n"
    "Where the API server is:\n"
    "  --kubeconfig FILE           kubeconfig to use; default: $KUBECONFIG, else the pod's own ServiceAccount\n"
    "  --context NAME              context of the kubeconfig; default: its current-context\n"
    "\n"
    "What it watches:\n"
    "  --namespace NS              only the groups of this namespace; default: all namespaces\n"
    "\n"
    "Several replicas:\n"
    "  --leader-elect=true|false   take part in leader election; default: true\n"
    "  --leader-elect-namespace NS namespace of the Lease; default: $POD_NAMESPACE, else the kubeconfig's\n"
    "  --leader-elect-name NAME    name of the Lease; default: cadre-operator\n"
    "  --leader-elect-lease-duration TIME\n"
    "                              time without a renewal after which another replica leads; default: 15s\n"
    "  --leader-elect-renew-deadline TIME\n"
    "                              time without a renewal after which the leader stops deciding; less than the\n"
    "                              lease duration; default: 10s\n"
    "  --leader-elect-retry-period TIME\n"
    "                              time between two tries to get or renew it; default: 2s\n"
    "\n"
    "Calls, agents and workers:\n"
    "  --listen ADDRESS            address for their connections, with TLS; :PORT: all addresses, '': no calls;\n"
    "                              default: :9443\n"
    "  --advertise URL             address that agents and workers connect to; default:\n"
    "                              wss://cadre-operator.<namespace of the operator>.svc:9443\n"
    "  --agent-image IMAGE         image with cadre-agent, for the init container of worker pods; default:\n"
    "                              cadre/operator:<version>\n"
    "  --agent-image-pull-policy P Always, IfNotPresent or Never; default: the default of Kubernetes\n"
    "  --memory-limit SIZE         memory that the operator may use, such as 3Gi; half of it is for calls and answers\n"
    "                              of all clients. Default: the limit of its container, or the machine's memory\n"
    "  --namespace-weights NS=N,...\n"
    "                              how many times as much as another namespace one may hold (memory, calls,\n"
    "                              connections) and do in a turn of the loop; 1 to 100; default: 1 for each\n"
    "  --spin=true|false           while calls take only microseconds, poll for the next one before sleeping: answers\n"
    "                              sooner, but uses CPU time; never with one CPU; default: true\n"
    "  --keys-secret NAME          Secret with the install's keys, in the operator's namespace; default: cadre-keys\n"
    "\n"
    "Monitoring:\n"
    "  --http-address HOST:PORT    address of /healthz, /readyz and /metrics; default: :8080\n"
    "  --log-level LEVEL           debug, info, warn or error; default: info\n"
    "  --log-format FORMAT         json or text; default: json\n"
    "\n"
    "  --check                     check whether an operator can work with these credentials, print the result, and\n"
    "                              exit with 0 or 1\n"
    "  --version                   print the version and exit\n"
    "  --help                      print this and exit\n";

enum {
    OPT_KUBECONFIG = 1,
    OPT_CONTEXT,
    OPT_NAMESPACE,
    OPT_ELECT,
    OPT_ELECT_NS,
    OPT_ELECT_NAME,
    OPT_ELECT_LEASE,
    OPT_ELECT_RENEW,
    OPT_ELECT_RETRY,
    OPT_HTTP,
    OPT_LISTEN,
    OPT_ADVERTISE,
    OPT_AGENT_IMAGE,
    OPT_AGENT_PULL,
    OPT_SPIN,
    OPT_MEMORY,
    OPT_WEIGHTS,
    OPT_KEYS,
    OPT_LEVEL,
    OPT_FORMAT,
    OPT_CHECK,
    OPT_VERSION,
    OPT_HELP
};

static const struct option table[] = {
    {"kubeconfig", required_argument, NULL, OPT_KUBECONFIG},
    {"context", required_argument, NULL, OPT_CONTEXT},
    {"namespace", required_argument, NULL, OPT_NAMESPACE},
    {"leader-elect", optional_argument, NULL, OPT_ELECT},
    {"leader-elect-namespace", required_argument, NULL, OPT_ELECT_NS},
    {"leader-elect-name", required_argument, NULL, OPT_ELECT_NAME},
    {"leader-elect-lease-duration", required_argument, NULL, OPT_ELECT_LEASE},
    {"leader-elect-renew-deadline", required_argument, NULL, OPT_ELECT_RENEW},
    {"leader-elect-retry-period", required_argument, NULL, OPT_ELECT_RETRY},
    {"http-address", required_argument, NULL, OPT_HTTP},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"advertise", required_argument, NULL, OPT_ADVERTISE},
    {"agent-image", required_argument, NULL, OPT_AGENT_IMAGE},
    {"agent-image-pull-policy", required_argument, NULL, OPT_AGENT_PULL},
    {"spin", optional_argument, NULL, OPT_SPIN},
    {"memory-limit", required_argument, NULL, OPT_MEMORY},
    {"namespace-weights", required_argument, NULL, OPT_WEIGHTS},
    {"keys-secret", required_argument, NULL, OPT_KEYS},
    {"log-level", required_argument, NULL, OPT_LEVEL},
    {"log-format", required_argument, NULL, OPT_FORMAT},
    {"check", no_argument, NULL, OPT_CHECK},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int wrong(const char *option, const char *value, const char *allowed)
{
    fprintf(stderr, "cadre-operator: %s %s: must be %s\n", option, value, allowed);
    return 2;
}

static int set_bool(const char *option, const char *value, bool *ret)
{
    if (!value || str_eq(value, "true"))
        *ret = true;
    else if (str_eq(value, "false"))
        *ret = false;
    else
        return wrong(option, value, "true or false");
    return -1;
}

static int set_format(const char *value, enum log_format *ret)
{
    if (str_eq(value, "json"))
        *ret = LOG_JSON;
    else if (str_eq(value, "text"))
        *ret = LOG_TEXT;
    else
        return wrong("--log-format", value, "json or text");
    return -1;
}

// As other components of Kubernetes take it, in one unit: 500ms, 15s, 2m.
static int set_time(const char *option, const char *value, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}};
    char digits[8] = "";
    size_t n = strspn(value, "0123456789");
    int64_t number = 0;
    if (n > 0 && n < sizeof digits) {
        memcpy(digits, value, n);
        str_to_i64(digits, &number);
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (number > 0 && str_eq(value + n, units[i].name)) {
            *ret_ms = number * units[i].ms;
            return -1;
        }
    return wrong(option, value, "a time such as 500ms, 15s or 2m");
}

static int set_advertise(struct options *o)
{
    const char *host = str_starts(optarg, "wss://") ? optarg + 6 : "", *colon = strrchr(host, ':');
    int64_t port;
    if (!colon || colon == host || strchr(host, '/') || !str_to_i64(colon + 1, &port) || port < 1 || port > 65535)
        return wrong("--advertise", optarg, "wss://HOST:PORT");
    o->advertise_url = optarg;
    return -1;
}

static int set_pull_policy(struct options *o)
{
    if (!str_eq(optarg, "Always") && !str_eq(optarg, "IfNotPresent") && !str_eq(optarg, "Never"))
        return wrong("--agent-image-pull-policy", optarg, "Always, IfNotPresent or Never");
    o->agent_image_pull_policy = optarg;
    return -1;
}

static int apply(struct options *o, int opt)
{
    switch (opt) {
    case OPT_KUBECONFIG:
        o->kubeconfig = optarg;
        return -1;
    case OPT_CONTEXT:
        o->context = optarg;
        return -1;
    case OPT_NAMESPACE:
        o->ns = optarg;
        return -1;
    case OPT_ELECT:
        return set_bool("--leader-elect", optarg, &o->leader_elect);
    case OPT_ELECT_NS:
        o->lease_ns = optarg;
        return -1;
    case OPT_ELECT_NAME:
        o->lease_name = optarg;
        return -1;
    case OPT_ELECT_LEASE:
        return set_time("--leader-elect-lease-duration", optarg, &o->lease_ms);
    case OPT_ELECT_RENEW:
        return set_time("--leader-elect-renew-deadline", optarg, &o->renew_ms);
    case OPT_ELECT_RETRY:
        return set_time("--leader-elect-retry-period", optarg, &o->retry_ms);
    case OPT_HTTP:
        o->http_address = optarg;
        return -1;
    case OPT_LISTEN:
        o->listen = optarg;
        return -1;
    case OPT_ADVERTISE:
        return set_advertise(o);
    case OPT_AGENT_IMAGE:
        o->agent_image = optarg;
        return -1;
    case OPT_AGENT_PULL:
        return set_pull_policy(o);
    case OPT_MEMORY:
        o->memory = memory_limit_parse(optarg);
        return o->memory ? -1 : wrong("--memory-limit", optarg, "bytes, such as 512Mi or 3Gi");
    case OPT_WEIGHTS:
        o->weights = optarg;
        return weights_check(optarg) ? -1
                                     : wrong("--namespace-weights", optarg,
                                             "namespaces and numbers from 1 to 100, such as team-a=3,team-b=2");
    case OPT_SPIN:
        return set_bool("--spin", optarg, &o->spin);
    case OPT_KEYS:
        o->keys_secret = optarg;
        return -1;
    case OPT_LEVEL:
        return log_level_parse(optarg, &o->log_level) ? -1 : wrong("--log-level", optarg, "debug, info, warn or error");
    case OPT_FORMAT:
        return set_format(optarg, &o->log_format);
    case OPT_CHECK:
        o->check = true;
        return -1;
    case OPT_VERSION:
        printf("cadre-operator %s\n", CADRE_VERSION);
        return 0;
    case OPT_HELP:
        fputs(help, stdout);
        return 0;
    default: // getopt has said what
        fputs("Try 'cadre-operator --help'.\n", stderr);
        return 2;
    }
}

static const char *env_or(const char *name, const char *fallback)
{
    const char *v = getenv(name);
    return str_empty(v) ? fallback : v;
}

// Else two could lead at once, or a leader would end at the first renewal that is slow.
static int check_lease(const struct options *o)
{
    if (o->retry_ms < o->renew_ms && o->renew_ms < o->lease_ms && o->lease_ms >= 1000)
        return -1;
    fputs("cadre-operator: leader election: the lease duration must be at least 1s and longer than the renew deadline, "
          "which must be longer than the retry period\n",
          stderr);
    return 2;
}

int options_parse(int argc, char **argv, struct options *ret)
{
    static char host[256];
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    *ret = (struct options){
        .kubeconfig = env_or("KUBECONFIG", NULL),
        .ns = "",
        .leader_elect = true,
        .spin = true,
        .lease_ns = env_or("POD_NAMESPACE", NULL),
        .lease_name = "cadre-operator",
        .lease_ms = 15 * 1000,
        .renew_ms = 10 * 1000,
        .retry_ms = 2 * 1000,
        .http_address = ":8080",
        .listen = ":9443",
        .agent_image = "cadre/operator:" CADRE_VERSION,
        .keys_secret = "cadre-keys",
        .log_level = LOG_INFO,
        .log_format = LOG_JSON,
        .identity = env_or("POD_NAME", host[0] ? host : "cadre-operator"),
    };
    for (int opt; (opt = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        int r = apply(ret, opt);
        if (r >= 0)
            return r;
    }
    if (optind < argc) {
        fprintf(stderr, "cadre-operator: unexpected argument '%s'\nTry 'cadre-operator --help'.\n", argv[optind]);
        return 2;
    }
    return check_lease(ret);
}
