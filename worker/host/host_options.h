// SPDX-License-Identifier: Apache-2.0
// The command line and the environment of cadre-worker.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOST_OPTIONS_CONNECT_MAX = 16 };

struct host_options_address {
    char address[320], path[256]; // as in ws_client
    bool tls;
};

struct host_options {
    const char *module, *class, *init; // class and init may be NULL
    const char *roles;                 // JSON; NULL = class and init say what to serve
    struct host_options_address connect[HOST_OPTIONS_CONNECT_MAX];
    size_t n_connect;
    bool describe;
    // These come from the environment only. The agent or the operator sets them. NULL = not set.
    const char *operator_url; // CADRE_OPERATOR; dialed if no proxy is named
    const char *ca_pem;       // CADRE_CA
    const char *group;        // CADRE_GROUP_UID
    char *ticket;             // CADRE_TICKET; removed from the environment, so that no child of the module inherits it
    int64_t attempt;          // CADRE_ATTEMPT
    size_t call_bytes;        // CADRE_CALL_BYTES: limit for the arguments of waiting calls of one proxy
    size_t store_bytes;       // CADRE_STORE_BYTES: limit for the objects that are kept
    size_t reference_bytes;   // CADRE_REFERENCE_BYTES: limit for the objects that one call refers to
    int64_t silence_ms;       // CADRE_SILENCE_SECONDS: for ranks that watch each other; 0 = no limit
    int64_t collective_ms;    // CADRE_COLLECTIVE_LIMIT_MS: for communicators without a limit of their own
    int objects_port;         // CADRE_OBJECTS_PORT plus LOCAL_RANK: where other workers fetch objects; 0 = a free port
};

// Returns -1 if the program should go on, else the exit code, after printing the reason. The caller frees ret->ticket.
int host_options_parse(int argc, char **argv, struct host_options *ret);
// Reads the environment only, for a module named `module`. `connect` is used instead of CADRE_CONNECT; NULL =
// CADRE_CONNECT.
int host_options_read(struct host_options *ret, const char *module, const char *connect);
