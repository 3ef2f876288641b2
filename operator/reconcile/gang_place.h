// SPDX-License-Identifier: Apache-2.0
// Plans a gang, after the gangs that come before it in the line.
#pragma once

#include "operator/placement/line.h"
#include "operator/placement/planner.h"
#include "operator/reconcile/plan.h"

struct gang_place_request {
    const struct cluster *cluster;
    const struct line *line;           // NULL = nobody else is there
    const struct object *owner;        // of the gang
    const struct condition *scheduled; // of the owner as it stands, NULL = never set
    // Some of the gang is there already: that it is made whole goes before whatever waits.
    bool resumes;
    int64_t now_ms;
};

// Plans with regard to those that have waited longer, and notes in the plan what is to be told to the line, and when to
// look again. `gang` needs no held nodes, no uid and no namespace.
void gang_place(const struct gang_place_request *r, struct gang *gang, struct arena *a, struct plan *plan,
                struct placement *ret);

// What a condition says of a gang that has not been placed: the planner's line, what else it has to say, and who is
// ahead.
const char *gang_place_message(const struct gang_place_request *r, const struct gang *gang, const struct placement *p,
                               struct arena *a);

// ", 2 pods of lower priority are evicted for them"; "" if none is.
const char *gang_place_victims(const struct placement *p, struct arena *a);
