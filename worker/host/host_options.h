// SPDX-License-Identifier: Apache-2.0
// The command line and the environment of cadre-worker.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTIONS_CONNECT_MAX = 16 };

struct options_address {
    char address[320], path[256]; // as for ws_client
    bool tls;
};

struct options {
    const char *module, *class, *init; // class and init may be NULL
    const char *roles;                 // JSON; NULL = class and init say what is served
    struct options_address connect[OPTIONS_CONNECT_MAX];
    size_t n_connect;
    bool describe;
    // From the environment alone, set by the agent or the operator; NULL = not there.
    const char *operator_url; // CADRE_OPERATOR; dialed where no proxy is named
    const char *ca_pem;       // CADRE_CA
    const char *group;        // CADRE_GROUP_UID
    char *ticket;             // CADRE_TICKET; taken out of the environment, so that no child of the module inherits it
    int64_t attempt;          // CADRE_ATTEMPT
    size_t call_bytes;        // CADRE_CALL_BYTES: of arguments that wait, of each proxy
    size_t store_bytes;       // CADRE_STORE_BYTES: of objects that are kept
    size_t reference_bytes;   // CADRE_REFERENCE_BYTES: of all objects that one call refers to
    int64_t silence_ms;       // CADRE_SILENCE_SECONDS: ranks that watch each other, 0 = for ever
    int64_t collective_ms;    // CADRE_COLLECTIVE_LIMIT_MS: that communicators wait which set no limit of their own
    int objects_port;         // CADRE_OBJECTS_PORT and LOCAL_RANK: where other workers get them; 0 = one that is free
};

// -1: go on; anything else is the exit code, everything was said. ret->ticket is the caller's to free.
int options_parse(int argc, char **argv, struct options *ret);
// The same of the environment alone, for what is called `module`. `connect`: instead of CADRE_CONNECT, NULL = that.
int options_read(struct options *ret, const char *module, const char *connect);
