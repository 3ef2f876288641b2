// SPDX-License-Identifier: Apache-2.0
// The command line of cadre-operator.
#pragma once

#include "common/base/log.h"

#include <stddef.h>
#include <stdint.h>

struct options {
    const char *kubeconfig; // NULL = in-cluster
    const char *context;
    const char *ns; // "" = all namespaces
    bool leader_elect;
    const char *lease_ns, *lease_name;
    int64_t lease_ms, renew_ms, retry_ms; // as in struct leader_options
    const char *http_address;
    const char *listen;        // for calls; "" = takes none
    const char *advertise_url; // where agents and workers dial: wss://HOST:PORT; NULL = the operator's Service
    const char *agent_image, *agent_image_pull_policy;
    const char *keys_secret;
    size_t memory;       // that the process may use; 0 = all that its container has
    const char *weights; // of namespaces (weights.h); NULL = all have the same
    bool spin;           // looks for a moment before it sleeps, while calls are answered in microseconds
    enum log_level log_level;
    enum log_format log_format;
    bool check;           // look whether an operator could work here, and exit
    const char *identity; // POD_NAME or the host's name
};

// Returns -1 to go on, or the exit code: 0 after --help and --version, 2 for a wrong command line (said on stderr).
int options_parse(int argc, char **argv, struct options *ret);
