// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "sdk/c/include/cadre/modes.h"

#define KUBECTL_OPTIONS                                                                                        \
    "      --context, --kubeconfig, --cluster, --user, --as, --as-group, --as-uid, --certificate-authority,\n" \
    "      --client-certificate, --client-key, --tls-server-name, --insecure-skip-tls-verify\n"                \
    "                          as of kubectl, which gets them\n"

#define GROUP_OPTIONS "  -n, --namespace NS      the group's namespace; default: that of the context\n" KUBECTL_OPTIONS

#define REACH_OPTIONS                                                                                                 \
    "      --operator-namespace NS  where Cadre is installed; default: $CADRE_OPERATOR_NAMESPACE,\n"                  \
    "                          else cadre-system\n"                                                                   \
    "      --service-account NAME   whose token to show: one of the group's namespace;\n"                             \
    "                          default: cadre-cli of the operator's namespace\n"                                      \
    "      --token TOKEN       a token with the audience cadre, instead of asking for one\n"                          \
    "      --token-file FILE   the same, in a file\n"                                                                 \
    "      --server ADDRESS    wss://HOST:PORT, ws://HOST:PORT or unix:/PATH of the operator,\n"                      \
    "                          without kubectl\n"                                                                     \
    "      --socket PATH       of a group that 'kubectl cadre run' runs; default: $CADRE_SOCKET, else the one of a\n" \
    "                          group with this name that runs here, unless an option names a cluster\n"               \
    "      --ca-file FILE      whom to trust at --server; see 'kubectl cadre ca'\n"

#define MODE_NAME(name, ...) " " #name
#define DISPATCH_MODES "\n     " CADRE_DISPATCH_MODES(MODE_NAME)
#define EXECUTE_MODES CADRE_EXECUTE_MODES(MODE_NAME)

static const struct {
    const char *verb, *text;
} helps[] = {
    {"call",
     "Usage: kubectl cadre call GROUP METHOD [ARGS] [OPTION]...\n"
     "Calls a method on the ranks of a WorkerGroup and prints the result as JSON: a list in the order of ranks, or\n"
     "the one result where one rank ran it.\n"
     "\n"
     "ARGS is JSON: a list (by position), an object (by name), or any other value as the only argument. A number\n"
     "below 0 goes behind --.\n"
     "\n"
     "  kubectl cadre call accumulator add 10\n"
     "  kubectl cadre call accumulator add '{\"x\": 10}' --timeout 30s\n"
     "  kubectl cadre call accumulator add --per-rank '[1, 2, 3, 4]'\n"
     "\n"
     "      --arg JSON          one argument by position; may be given several times\n"
     "      --per-rank JSON     arguments of each rank: a list with one element a rank\n"
     "      --rank N            only this rank\n"
     "      --role NAME         of a group with roles (spec.worker.roles): which of them is called\n"
     "      --dispatch MODE     how arguments are dealt out; default: as the method was registered. One of these, or "
     "as\n"
     "                          one-to-all:" DISPATCH_MODES "\n"
     "      --execute MODE      which ranks run it; default: as the method was registered. One of" EXECUTE_MODES "\n"
     "      --split JSON        of the modes split and 3d-*: what goes where, such as '{\"dims\": [\"dp\"]}'\n"
     "      --collect JSON      likewise: whose results are kept, such as '{\"at\": {\"tp\": 0}}'\n"
     "      --pad               fill a batch up that cannot be cut evenly\n"
     "      --timeout TIME      such as 30s or 2m; default: 60s; 0: as long as it takes\n"
     "      --attempt N         refused if the group is at another attempt\n"
     "      --no-wait           refused unless the group is ready\n"
     "      --keep              results stay on the workers; prints a reference to them, which may be an argument of "
     "other\n"
     "                          calls; they stay until 'kubectl cadre free', or the processes end\n"
     "      --no-reply          nobody wants the result: ranks send none, and nothing is printed once all have run it\n"
     "      --logs              what the ranks print meanwhile, on standard error; equal lines as one: [rank 0-3]\n"
     "  -o, --output FORMAT     json (default), or ranks: a line for each rank, of modes that have a result of "
     "each\n" GROUP_OPTIONS REACH_OPTIONS},
    {"info", "Usage: kubectl cadre info GROUP [OPTION]...\n"
             "What the proxy knows of a WorkerGroup: its ranks, where they run, its methods.\n"
             "\n"
             "      --timeout TIME      such as 30s or 2m; default: 60s\n"
             "  -o, --output FORMAT     json: as the proxy says it\n" GROUP_OPTIONS REACH_OPTIONS},
    {"kill", "Usage: kubectl cadre kill GROUP --rank N [OPTION]...\n"
             "Ends the process of a rank at once, as if it had crashed: the group's restartPolicy says what follows. "
             "Calls that\n"
             "it has not answered fail. Returns once it is gone.\n"
             "\n"
             "      --rank N            whose process\n"
             "      --attempt N         refused if the group is at another attempt\n"
             "      --timeout TIME      such as 30s or 2m; default: 60s\n" GROUP_OPTIONS REACH_OPTIONS},
    {"top", "Usage: kubectl cadre top [GROUP] [OPTION]...\n"
            "How often each method of a WorkerGroup (default: of all of the namespace) is called, how long its calls\n"
            "take, and which rank holds them up: of calls to several ranks the one that was, all in all, the farthest\n"
            "behind the median, by how much on average and in how many of them it was the last. What is shown are the\n"
            "calls that ended between two looks, through all replicas of the operator; one that did not answer is\n"
            "named below.\n"
            "\n"
            "  -w, --watch             again and again, until interrupted\n"
            "      --interval TIME     between two looks; default: 2s\n"
            "      --timeout TIME      of an answer; default, and at most: 10s\n"
            "  -o, --output FORMAT     json: a list of one object a method\n" GROUP_OPTIONS REACH_OPTIONS},
    {"put",
     "Usage: kubectl cadre put GROUP VALUE [OPTION]...\n"
     "Puts a value (JSON) on a worker of a WorkerGroup and prints a reference to it, which may be an argument of\n"
     "calls, also of other groups of the namespace. It stays until 'kubectl cadre free', or the process ends.\n"
     "\n"
     "      --rank N            on this rank; default: the one with the fewest calls\n"
     "      --dispatch MODE     on all ranks, dealt out as the arguments of a call\n"
     "      --timeout TIME      such as 30s or 2m; default: 60s\n" GROUP_OPTIONS REACH_OPTIONS},
    {"get",
     "Usage: kubectl cadre get GROUP REFERENCE [OPTION]...\n"
     "Prints what a reference stands for. REFERENCE is '{\"$ref\": \"cadre:1:...\"}' or cadre:1:... alone, of any\n"
     "group of the namespace.\n"
     "\n"
     "      --timeout TIME      such as 30s or 2m; default: 60s\n"
     "  -o, --output FORMAT     json\n" GROUP_OPTIONS REACH_OPTIONS},
    {"free", "Usage: kubectl cadre free GROUP REFERENCE [OPTION]...\n"
             "Frees what a reference stands for.\n"
             "\n"
             "      --timeout TIME      such as 30s or 2m; default: 60s\n" GROUP_OPTIONS REACH_OPTIONS},
    {"why", "Usage: kubectl cadre why GROUP [OPTION]...\n"
            "Explains why a group is not ready, or how it has failed: its conditions, what it waits for and since "
            "when, where\n"
            "its pods are, the last failure with the last lines of output, its events, and what can be done.\n"
            "GROUP is the name of a WorkerGroup or PlacementGroup; where there are both, plg/NAME is the latter.\n"
            "\n" GROUP_OPTIONS},
    {"logs",
     "Usage: kubectl cadre logs GROUP [OPTION]...\n"
     "Prints the output of all ranks of a WorkerGroup, pod by pod in their order; lines begin with [rank N]. Of a\n"
     "local run, and with --fold, what they print from now on, by way of the operator; equal lines of several\n"
     "ranks are one: [rank 0-3].\n"
     "\n"
     "  -f, --follow            go on with what they print from now on\n"
     "      --fold              equal lines as one; with -f\n"
     "      --rank N            only the lines of this rank\n"
     "      --tail N            only the last lines of each pod\n" GROUP_OPTIONS REACH_OPTIONS},
    {"ca", "Usage: kubectl cadre ca [OPTION]...\n"
           "Prints the certificate of the operator's CA, for programs that connect to it.\n"
           "\n"
           "      --operator-namespace NS  where Cadre is installed; default: $CADRE_OPERATOR_NAMESPACE,\n"
           "                          else cadre-system\n" KUBECTL_OPTIONS},
    {"version", "Usage: kubectl cadre version\nPrints the version.\n"},
};

static const char summary[] = "Usage: kubectl cadre COMMAND [ARG]... [OPTION]...\n"
                              "Drives groups of ranked worker processes.\n"
                              "\n"
                              "  call GROUP METHOD [ARGS]  call a method on the ranks of a group\n"
                              "  info GROUP                its ranks and methods\n"
                              "  kill GROUP --rank N       end a rank's process, as if it had crashed\n"
                              "  top [GROUP]               how often and how long, and who is slow\n"
                              "  put GROUP VALUE           a value that stays on a worker, as a reference\n"
                              "  get GROUP REFERENCE       what it stands for\n"
                              "  free GROUP REFERENCE\n"
                              "  why GROUP                 why it is not ready, or how it has failed\n"
                              "  logs GROUP                the output of all ranks\n"
                              "  run -f FILE               a group as processes of this machine, without a cluster\n"
                              "  ca                        the operator's CA certificate\n"
                              "  version\n"
                              "\n"
                              "'kubectl cadre COMMAND --help' tells more.\n";

const char *help_of(const char *verb)
{
    for (size_t i = 0; i < ARRAY_LEN(helps); i++)
        if (str_eq(helps[i].verb, verb))
            return helps[i].text;
    return summary;
}
