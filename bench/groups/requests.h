// SPDX-License-Identifier: Apache-2.0
// The requests of all clients that the API server has answered. Unlike time, they do not depend on the load of the
// machine.
#pragma once

#include "bench/groups/world.h"

enum { REQUEST_KINDS_MAX = 192 };

struct request_kind { // the last of REQUEST_KINDS_MAX stands for all that have no place
    char what[160];   // such as "POST pods/binding"; "GET pods 404" where it was refused
    double n;
};

// Reads and writes of single objects, but for leases and nodes, which go on when nothing is asked.
struct requests {
    struct request_kind kinds[REQUEST_KINDS_MAX];
    size_t n;
};

void requests_take(struct world *w, struct requests *ret); // so far
double requests_total(const struct requests *r);
double requests_of(const struct requests *r, const char *what); // 0 of none
// ret += what came between the two.
void requests_add_between(const struct requests *before, const struct requests *after, struct requests *ret);
