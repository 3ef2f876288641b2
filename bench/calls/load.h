// SPDX-License-Identifier: Apache-2.0
// Calls through the client library, as a user's program makes them, for some seconds. Exits with a message if a call
// fails.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct load_call {
    const char *group, *method;
    size_t bytes;       // length of the argument, a string
    unsigned in_flight; // calls at a time; 1: one after the other
    const char *args;   // these arguments instead, as JSON; NULL = the string
    bool batch;         // the argument is a batch with one tensor of `bytes` instead
};

enum { LOAD_WARM = 2 }; // calls before the first one that counts

struct cadre_client;

// Returns the calls a second. *ret_p50_us is the median time of a call; if more than one call is in flight, it contains
// the time in the queue.
double load_rate(struct cadre_client *c, const struct load_call *call, double seconds, double *ret_p50_us);
