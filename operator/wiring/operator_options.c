// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/operator_options.h"

#include "common/base/host_port.h"
#include "common/base/mem.h"
#include "common/base/memory_limit.h"
#include "common/base/option.h"
#include "common/base/str.h"
#include "operator/proxy/weights.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: cadre-operator [OPTION]...\n"
    "Places groups of ranked GPU pods (WorkerGroup, cadre.dev/v1alpha1) on a Kubernetes cluster.\n"
    "\n"
    "API server:\n"
    "  --kubeconfig FILE           kubeconfig to use; default: $KUBECONFIG, else the pod's own ServiceAccount,\n"
    "                              else ~/.kube/config\n"
    "  --context NAME              context of the kubeconfig; default: its current-context\n"
    "\n"
    "Namespaces:\n"
    "  --namespace NS              only the groups of this namespace; default: all namespaces\n"
    "\n"
    "Leader election:\n"
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
    "                              weights of namespaces: one with weight 3 may use three times as much memory,\n"
    "                              calls, connections and loop time as others; 1 to 100; default: 1\n"
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

static const char *set_log_level(void *options, const char *value)
{
    return log_level_parse(value, &((struct operator_options *)options)->log_level)
               ? NULL
               : "must be debug, info, warn or error";
}

static const char *set_log_format(void *options, const char *value)
{
    ((struct operator_options *)options)->log_format = str_eq(value, "text") ? LOG_TEXT : LOG_JSON;
    return str_eq(value, "json") || str_eq(value, "text") ? NULL : "must be json or text";
}

static const char *set_advertise(void *options, const char *value)
{
    _cleanup_(free_p) char *host = NULL;
    const char *port;
    ((struct operator_options *)options)->advertise_url = value;
    return str_starts(value, "wss://") && host_port_split(value + strlen("wss://"), &host, &port)
               ? NULL
               : "must be wss://HOST:PORT, or wss://[ADDRESS]:PORT for an IPv6 address";
}

static const char *set_pull_policy(void *options, const char *value)
{
    if (!str_eq(value, "Always") && !str_eq(value, "IfNotPresent") && !str_eq(value, "Never"))
        return "must be Always, IfNotPresent or Never";
    ((struct operator_options *)options)->agent_image_pull_policy = value;
    return NULL;
}

static const char *set_memory(void *options, const char *value)
{
    size_t *memory = &((struct operator_options *)options)->memory;
    return (*memory = memory_limit_parse(value)) ? NULL : "must be bytes, such as 512Mi or 3Gi";
}

static const char *set_weights(void *options, const char *value)
{
    ((struct operator_options *)options)->weights = value;
    return weights_check(value) ? NULL : "must be namespaces and numbers from 1 to 100, such as team-a=3,team-b=2";
}

static const struct option_row rows[] = {
    {"kubeconfig", OPTION_TEXT, offsetof(struct operator_options, kubeconfig)},
    {"context", OPTION_TEXT, offsetof(struct operator_options, context)},
    {"namespace", OPTION_TEXT, offsetof(struct operator_options, ns)},
    {"leader-elect", OPTION_BOOL, offsetof(struct operator_options, leader_elect)},
    {"leader-elect-namespace", OPTION_TEXT, offsetof(struct operator_options, lease_ns)},
    {"leader-elect-name", OPTION_TEXT, offsetof(struct operator_options, lease_name)},
    {"leader-elect-lease-duration", OPTION_TIME, offsetof(struct operator_options, lease_ms)},
    {"leader-elect-renew-deadline", OPTION_TIME, offsetof(struct operator_options, renew_ms)},
    {"leader-elect-retry-period", OPTION_TIME, offsetof(struct operator_options, retry_ms)},
    {"http-address", OPTION_TEXT, offsetof(struct operator_options, http_address)},
    {"listen", OPTION_TEXT, offsetof(struct operator_options, listen)},
    {"advertise", OPTION_SET, .set = set_advertise},
    {"agent-image", OPTION_TEXT, offsetof(struct operator_options, agent_image)},
    {"agent-image-pull-policy", OPTION_SET, .set = set_pull_policy},
    {"spin", OPTION_BOOL, offsetof(struct operator_options, spin)},
    {"memory-limit", OPTION_SET, .set = set_memory},
    {"namespace-weights", OPTION_SET, .set = set_weights},
    {"keys-secret", OPTION_TEXT, offsetof(struct operator_options, keys_secret)},
    {"log-level", OPTION_SET, .set = set_log_level},
    {"log-format", OPTION_SET, .set = set_log_format},
    {"check", OPTION_FLAG, offsetof(struct operator_options, check)},
    {0},
};

static const struct option_program program = {"cadre-operator", help, rows, .usage = 2};

static const char *env_or(const char *name, const char *fallback)
{
    const char *v = getenv(name);
    return str_empty(v) ? fallback : v;
}

// Without these rules, two replicas could lead at the same time, or a leader would lose the Lease at the first slow
// renewal.
static int check_lease(const struct operator_options *o)
{
    if (o->retry_ms < o->renew_ms && o->renew_ms < o->lease_ms && o->lease_ms >= 1000)
        return -1;
    fputs("cadre-operator: leader election: the lease duration must be at least 1s and longer than the renew deadline, "
          "which must be longer than the retry period\n",
          stderr);
    return 2;
}

int operator_options_parse(int argc, char **argv, struct operator_options *ret)
{
    static char host[256];
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    *ret = (struct operator_options){
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
    int r = option_parse(&program, argc, argv, ret);
    if (r >= 0)
        return r;
    if (optind < argc)
        return option_wrong(&program, "argument", argv[optind], "the program takes options only");
    return check_lease(ret);
}
