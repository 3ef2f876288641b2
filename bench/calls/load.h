// SPDX-License-Identifier: Apache-2.0
// The client: calls through the client library, as a user's program makes them.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct load_call {
    const char *group, *method;
    size_t bytes;       // of its argument, a string
    unsigned in_flight; // 1: one after the other
    const char *args;   // instead of `bytes`: JSON; NULL = none
    bool batch;         // instead: a batch, of one tensor of so many bytes
};

enum { LOAD_WARM = 2 }; // calls before those that count

struct cadre_client;

// ca_pem: whom to trust, with TLS; or NULL. Exits with a message where something fails, as all here.
struct cadre_client *load_open(const char *address, const char *ns, const char *ca_pem);
// Calls a second; the median time of one (with its time in the queue, where more are in flight) to ret_p50_us.
double load_rate(struct cadre_client *c, const struct load_call *call, double seconds, double *ret_p50_us);
