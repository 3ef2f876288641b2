// SPDX-License-Identifier: Apache-2.0
// The command line of cadre-local.
#pragma once

#include <stdbool.h>

enum { OPTIONS_PROCESSES_MAX = 1024 };

struct options {
    const char *listen;     // "127.0.0.1:PORT", "[::1]:PORT" or "unix:/path"; NULL = where it is looked for
    const char *ns, *group; // of a manifest's group NULL = as it says
    const char *agent;      // the program
    int processes;
    bool serve;            // groups that clients make
    int with_parent;       // the process that started it, and with which it ends; 0 = it goes on
    int nodes, gpus, cpus; // logical nodes; GPUs and CPUs of each
    bool plain;            // no memory is shared
    bool sleeps;           // whenever the proxy waits
    char **command;        // NULL with a manifest
    const char *file;      // the manifest, NULL = none
    const char *map;       // "PREFIX=DIRECTORY", NULL = none
};

// -1: go on; anything else is the exit code, everything was said.
int options_parse(int argc, char **argv, struct options *ret);
