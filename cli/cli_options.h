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
enum { OPTIONS_USAGE = 2, OPTIONS_KUBECTL_MAX = 32 };

struct options { // strings are argv's
    enum verb verb;
    const char *ns;
    char *kubectl[OPTIONS_KUBECTL_MAX]; // "--context=x" and the like, owned: what kubectl gets as it is
    size_t n_kubectl;
    // How to reach the operator
    const char *operator_ns; // from the environment, else cadre-system
    const char *server;      // NULL: through the API server
    const char *socket;      // of a local run; NULL: $CADRE_SOCKET, else as above, or one that is found
    const char *ca_file, *token, *token_file, *service_account;
    // What to do
    const char *group; // a name, of no verb NAMESPACE/NAME; of top NULL = all
    enum output output;
    char *args; // a JSON list or object, of put any JSON, owned; NULL = none
    // The call itself: method, arguments, modes, rank, times. Of logs only the rank.
    cadre_client_request request;
    bool logs; // what the ranks print meanwhile
    bool fold; // equal lines of them as one
    bool follow;
    int64_t tail; // -1 = all
    bool watch;
    int64_t interval_ms; // 0 = the default
};

// Returns -1: go on. Else the exit status: 0 after --help, OPTIONS_USAGE with the reason on stderr.
int options_parse(int argc, char **argv, struct options *ret);
void options_done(struct options *o);

// "30s", "1m30s", "500ms", "2h", "45" (seconds). False for anything else.
bool options_duration(const char *text, int64_t *ret_ms);
