// SPDX-License-Identifier: Apache-2.0
// The command line of cadre-operator.
#pragma once

#include "common/base/log.h"

#include <stddef.h>
#include <stdint.h>

struct operator_options {
    const char *kubeconfig; // NULL = the pod's ServiceAccount
    const char *context;
    const char *ns; // "" = all namespaces
    bool leader_elect;
    const char *lease_ns, *lease_name;
    int64_t lease_ms, renew_ms, retry_ms; // as in struct leader_options
    const char *http_address;
    const char *listen;        // address for calls; "" = no calls
    const char *advertise_url; // where agents and workers connect: wss://HOST:PORT; NULL = the operator's Service
    const char *agent_image, *agent_image_pull_policy;
    const char *keys_secret;
    size_t memory;       // bytes that the process may use; 0 = the limit of its container
    const char *weights; // of namespaces (weights.h); NULL = all are equal
    bool spin;           // poll for a moment before sleeping, while calls take only microseconds
    enum log_level log_level;
    enum log_format log_format;
    bool check;           // check whether an operator could work here, and exit
    const char *identity; // POD_NAME, or the name of the host
};

// Returns -1 to go on, or the exit code: 0 after --help and --version, 2 for a wrong command line (the error is on
// stderr).
int operator_options_parse(int argc, char **argv, struct operator_options *ret);
