// SPDX-License-Identifier: Apache-2.0
// The command line of bench-calls.
#pragma once

struct options {
    double seconds; // of each measurement
    int rounds;
    unsigned idle;
    const char *worker, *module, *python, *ray_script, *client_python, *client_script;
    const char *only; // lines whose name has this in it; NULL = all
    // Instead of all that: one kind of call, of a proxy that runs already
    const char *server, *ns, *group, *method, *args;
    unsigned in_flight;
};

// -1: go on; anything else is the exit code, everything was said.
int options_parse(int argc, char **argv, struct options *ret);
