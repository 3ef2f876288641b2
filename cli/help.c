// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "sdk/c/include/cadre/modes.h"

#define KUBECTL_OPTIONS                                                                                        \
    "      --context, --kubeconfig, --cluster, --user, --as, --as-group, --as-uid, --certificate-authority,\n" \
    "      --client-certificate, --client-key, --tls-server-name, --insecure-skip-tls-verify\n"                \
    "                          as for kubectl; they are passed to it\n"

#define GROUP_OPTIONS "  -n, --namespace NS      namespace of the group; default: the context's\n" KUBECTL_OPTIONS

#define REACH_OPTIONS                                                                                         \
    "      --operator-namespace NS  where Cadre is installed; default: $CADRE_OPERATOR_NAMESPACE,\n"          \
    "                          else cadre-system\n"                                                           \
    "      --service-account NAME   call with a token of this ServiceAccount of the group's\n"                \
    "                          namespace; default: cadre-cli of the operator's namespace\n"                   \
    "      --token TOKEN       a token with audience cadre, instead of a new one\n"                           \
    "      --token-file FILE   the same, in a file\n"                                                         \
    "      --server ADDRESS    wss://HOST:PORT, ws://HOST:PORT or unix:/PATH of the operator,\n"              \
    "                          without kubectl\n"                                                             \
    "      --socket PATH       socket of 'kubectl cadre run'; default: $CADRE_SOCKET, else the socket of a\n" \
    "                          group with this name that runs here, unless an option names a cluster\n"       \
    "      --ca-file FILE      the CA to trust for --server; see 'kubectl cadre ca'\n"

#define MODE_NAME(name, ...) " " #name
#define DISPATCH_MODES "\n     " CADRE_DISPATCH_MODES(MODE_NAME)
#define EXECUTE_MODES CADRE_EXECUTE_MODES(MODE_NAME)

static const struct {
    const char *verb, *text;
} helps[] = {
    {"call",
     "Usage: kubectl cadre call GROUP METHOD [ARGS] [OPTION]...\n"
     "Calls a method on the ranks of a WorkerGroup and prints the result as JSON: a list in rank order, or a\n"
     "single result if one rank ran it.\n"
     "\n"
     "ARGS is JSON: a list (by position), an object (by name), or any other value as the only argument. Write a\n"
     "negative number after --.\n"
     "\n"
     "  kubectl cadre call accumulator add 10\n"
     "  kubectl cadre call accumulator add '{\"x\": 10}' --timeout 30s\n"
     "  kubectl cadre call accumulator add --per-rank '[1, 2, 3, 4]'\n"
     "\n"
     "      --arg JSON          one argument by position; repeat it for more\n"
     "      --per-rank JSON     arguments of each rank: a list with one element per rank\n"
     "      --rank N            only this rank\n"
     "      --role NAME         the role to call, in a group with roles (spec.worker.roles)\n"
     "      --dispatch MODE     how arguments are split; default: as the method was registered. One of these, or "
     "as\n"
     "                          one-to-all:" DISPATCH_MODES "\n"
     "      --execute MODE      which ranks run it; default: as the method was registered. One of" EXECUTE_MODES "\n"
     "      --split JSON        for split and 3d-*: which rank gets which piece, such as '{\"dims\": [\"dp\"]}'\n"
     "      --collect JSON      for split and 3d-*: whose results are collected, such as '{\"at\": {\"tp\": 0}}'\n"
     "      --pad               repeat the last row of a batch that cannot be split evenly\n"
     "      --timeout TIME      such as 30s or 2m; default: 60s; 0: no limit\n"
     "      --attempt N         refused if attempt N is over; waits if it is still to come\n"
     "      --no-wait           refused unless the group is ready\n"
     "      --keep              keep results on the workers and print a reference to them, for arguments of "
     "other\n"
     "                          calls; they stay until 'kubectl cadre free', or until their processes end\n"
     "      --no-reply          discard the results: print nothing, and end when all ranks have run the call\n"
     "      --logs              print the ranks' output to standard error; equal lines become one: [rank 0-3]\n"
     "  -o, --output FORMAT     json (default), or ranks: one line per rank, for modes with one result per "
     "rank\n" GROUP_OPTIONS REACH_OPTIONS},
    {"info", "Usage: kubectl cadre info GROUP [OPTION]...\n"
             "Shows what the proxy knows about a WorkerGroup: its STATUS and MESSAGE, ranks, nodes, GPUs, methods.\n"
             "'kubectl cadre status' is the same.\n"
             "\n"
             "      --timeout TIME      such as 30s or 2m; default: 60s\n"
             "  -o, --output FORMAT     json: the answer of the proxy\n" GROUP_OPTIONS REACH_OPTIONS},
    {"kill",
     "Usage: kubectl cadre kill GROUP --rank N [OPTION]...\n"
     "Ends the process of a rank at once, as if it had crashed. The group's restartPolicy decides what follows. "
     "Open\n"
     "calls of the process fail. Returns when the process is gone.\n"
     "\n"
     "      --rank N            the rank to kill\n"
     "      --attempt N         refused unless the process is of attempt N\n"
     "      --timeout TIME      such as 30s or 2m; default: 60s\n" GROUP_OPTIONS REACH_OPTIONS},
    {"stack", "Usage: kubectl cadre stack GROUP [OPTION]...\n"
              "Shows the stacks of all threads of all ranks, for workers in Python. It works while a rank runs a\n"
              "method, or C code that holds Python's lock. Exits with 1 if a rank does not answer within 5 seconds.\n"
              "\n"
              "      --rank N            only this rank\n" GROUP_OPTIONS REACH_OPTIONS},
    {"top",
     "Usage: kubectl cadre top [GROUP] [OPTION]...\n"
     "Shows, for each method of a WorkerGroup (default: of all groups of the namespace), how often clients call it,\n"
     "how long calls take, and which rank is slow: the rank that was farthest behind the median over all calls to\n"
     "several ranks, its average delay, and how often it was the last. The table shows the calls that ended between\n"
     "two measurements, through all replicas of the operator. Lines below the table say how far a transfer of\n"
     "weights to a group has come, and name each replica that did not answer.\n"
     "\n"
     "  -w, --watch             repeat the table until interrupted\n"
     "      --interval TIME     between two measurements; default: 2s\n"
     "      --timeout TIME      for an answer; default and maximum: 10s\n"
     "  -o, --output FORMAT     json: a list with one object per method and transfer\n" GROUP_OPTIONS REACH_OPTIONS},
    {"put",
     "Usage: kubectl cadre put GROUP VALUE [OPTION]...\n"
     "Stores a JSON value on a worker of a WorkerGroup and prints a reference to it, for arguments of calls, also\n"
     "to other groups of the namespace. It stays until 'kubectl cadre free', or until the process ends.\n"
     "\n"
     "      --rank N            on this rank; default: the rank with the fewest calls\n"
     "      --dispatch MODE     on all ranks, split like the arguments of a call\n"
     "      --timeout TIME      such as 30s or 2m; default: 60s\n" GROUP_OPTIONS REACH_OPTIONS},
    {"get", "Usage: kubectl cadre get GROUP REFERENCE [OPTION]...\n"
            "Prints the value of a reference. REFERENCE is '{\"$ref\": \"cadre:1:...\"}' or cadre:1:... alone, of any\n"
            "group of the namespace.\n"
            "\n"
            "      --timeout TIME      such as 30s or 2m; default: 60s\n"
            "  -o, --output FORMAT     json\n" GROUP_OPTIONS REACH_OPTIONS},
    {"free", "Usage: kubectl cadre free GROUP REFERENCE [OPTION]...\n"
             "Frees the value of a reference.\n"
             "\n"
             "      --timeout TIME      such as 30s or 2m; default: 60s\n" GROUP_OPTIONS REACH_OPTIONS},
    {"why", "Usage: kubectl cadre why GROUP [OPTION]...\n"
            "Explains why a group is not ready, or how it has failed: its conditions, what it waits for and since "
            "when, its\n"
            "pods and nodes, the last failure with the last lines of output, its events, and what you can do.\n"
            "GROUP is the name of a WorkerGroup or PlacementGroup; if both exist, plg/NAME is the PlacementGroup.\n"
            "\n" GROUP_OPTIONS},
    {"logs",
     "Usage: kubectl cadre logs GROUP [OPTION]...\n"
     "Prints the output of all ranks of a WorkerGroup, pod by pod; lines begin with [rank N], except with runtime\n"
     "Plain. For a local run, and with --fold, it prints new output, which comes through the operator; equal\n"
     "lines of several ranks become one: [rank 0-3].\n"
     "\n"
     "  -f, --follow            continue with new output\n"
     "      --fold              print equal lines as one; only with -f\n"
     "      --rank N            only the lines of this rank\n"
     "      --tail N            only the last lines of each pod\n" GROUP_OPTIONS REACH_OPTIONS},
    {"ca", "Usage: kubectl cadre ca [OPTION]...\n"
           "Prints the certificate of the operator's CA, for programs that connect to it.\n"
           "\n"
           "      --operator-namespace NS  where Cadre is installed; default: $CADRE_OPERATOR_NAMESPACE,\n"
           "                          else cadre-system\n" KUBECTL_OPTIONS},
    {"version", "Usage: kubectl cadre version\nPrints the version.\n"},
};

static const char summary[] =
    "Usage: kubectl cadre COMMAND [ARG]... [OPTION]...\n"
    "Calls and inspects groups of ranked worker processes.\n"
    "\n"
    "  call GROUP METHOD [ARGS]  call a method on the ranks of a group\n"
    "  info GROUP                its STATUS, ranks, GPUs and methods; also: status GROUP\n"
    "  kill GROUP --rank N       end a rank's process, as if it had crashed\n"
    "  stack GROUP               the stacks of all threads of Python workers\n"
    "  top [GROUP]               rates and durations of calls, and the slowest rank\n"
    "  put GROUP VALUE           store a value on a worker, and print a reference to it\n"
    "  get GROUP REFERENCE       the value of a reference\n"
    "  free GROUP REFERENCE      free that value\n"
    "  why GROUP                 why it is not ready, or how it failed\n"
    "  logs GROUP                the output of all ranks\n"
    "  run -f FILE               run a group as processes of this machine, without a cluster\n"
    "  ca                        the operator's CA certificate\n"
    "  version\n"
    "\n"
    "'kubectl cadre COMMAND --help' lists the options of a command.\n";

const char *help_of(const char *verb)
{
    for (size_t i = 0; i < ARRAY_LEN(helps); i++)
        if (str_eq(helps[i].verb, verb))
            return helps[i].text;
    return summary;
}
