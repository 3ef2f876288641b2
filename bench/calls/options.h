// SPDX-License-Identifier: Apache-2.0
// The command line of bench-calls.
#pragma once

struct options {
    double seconds; // of each measurement
    int rounds;
    unsigned idle;
    const char *worker, *module, *python, *ray_script, *client_python, *client_script;
    const char *only; // only lines whose name contains this text; NULL = all
    // Instead of all that: one kind of call to a proxy that runs already
    const char *server, *ns, *group, *method, *args;
    unsigned in_flight;
};

// Returns -1, or the exit code if the program is to end. It has printed why.
int options_parse(int argc, char **argv, struct options *ret);
