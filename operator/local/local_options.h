// SPDX-License-Identifier: Apache-2.0
// The command line of cadre-local.
#pragma once

#include <stdbool.h>

struct local_options {
    const char *listen;     // "127.0.0.1:PORT", "[::1]:PORT" or "unix:/path"; NULL = the default socket
    const char *ns, *group; // NULL with a manifest = as the manifest says
    const char *agent;      // the path of cadre-agent
    int processes;
    bool serve;            // clients create the groups
    int with_parent;       // the process that started it; it ends with that process; 0 = it does not
    int nodes, gpus, cpus; // number of logical nodes; GPUs and CPUs per node
    bool plain;            // without shared memory
    bool sleeps;           // the proxy sleeps whenever it waits, and does not poll
    char **command;        // NULL if there is a manifest
    const char *file;      // the manifest, NULL = none
    const char *map;       // "PREFIX=DIRECTORY", NULL = none
};

// Returns -1 to go on, or the exit code after it has printed everything.
int local_options_parse(int argc, char **argv, struct local_options *ret);
