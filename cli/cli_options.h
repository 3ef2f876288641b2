// SPDX-License-Identifier: Apache-2.0
// The command line of kubectl-cadre.
#pragma once

#include "sdk/c/include/cadre/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verb {
    VERB_CALL,
    VERB_INFO,
    VERB_KILL,
    VERB_STACK,
    VERB_TOP,
    VERB_PUT,
    VERB_GET,
    VERB_FREE,
    VERB_WHY,
    VERB_LOGS,
    VERB_CA,
    VERB_VERSION,
    VERB_COUNT
};
enum output { OUTPUT_DEFAULT, OUTPUT_JSON, OUTPUT_RANKS };
enum { CLI_OPTIONS_USAGE = 2, CLI_OPTIONS_KUBECTL_MAX = 32 };

struct cli_options { // strings are argv's
    enum verb verb;
    const char *ns;
    char *kubectl[CLI_OPTIONS_KUBECTL_MAX]; // "--context=x" and the like, owned: passed on to kubectl
    size_t n_kubectl;
    // How to reach the operator
    const char *operator_ns; // from the environment, otherwise cadre-system
    const char *server;      // NULL: through the API server
    const char *socket;      // of a local run; NULL: $CADRE_SOCKET, otherwise as above, or a socket that is found
    const char *ca_file, *token, *token_file, *service_account;
    // The command
    const char *group; // a name, never NAMESPACE/NAME; for top, NULL = all
    enum output output;
    char *args; // a JSON list or object, for put any JSON, owned; NULL = none
    // The call itself: method, arguments, modes, rank, times. Logs use only the rank.
    cadre_client_request request;
    bool logs; // show the output of the ranks during the call
    bool fold; // show equal lines of several ranks as one
    bool follow;
    int64_t tail; // -1 = all
    bool watch;
    int64_t interval_ms; // 0 = the default
};

// Returns -1: continue. Otherwise the exit status: 0 after --help, CLI_OPTIONS_USAGE with the reason on stderr.
int cli_options_parse(int argc, char **argv, struct cli_options *ret);
void cli_options_done(struct cli_options *o);

// "30s", "1m30s", "500ms", "2h", "45" (seconds). False for anything else.
bool cli_options_duration(const char *text, int64_t *ret_ms);
