// SPDX-License-Identifier: Apache-2.0
// Plans a gang, after the gangs that come before it in the line.
#pragma once

#include "operator/placement/line.h"
#include "operator/placement/planner.h"
#include "operator/reconcile/plan.h"

struct gang_place_request {
    const struct cluster *cluster;
    const struct line *line;           // NULL = no other gang waits
    const struct object *owner;        // of the gang
    const struct condition *scheduled; // in the status of the owner, NULL = never set
    // Some pods of the gang exist already. Its completion comes before all gangs that wait.
    bool resumes;
    int64_t now_ms;
};

// Plans with regard to the gangs that have waited longer. Adds the news for the line to the plan, and the time of the
// next look. The caller need not set the held nodes, the uid and the namespace of `gang`.
void gang_place(const struct gang_place_request *r, struct gang *gang, struct arena *a, struct plan *plan,
                struct placement *ret);

// The message of a condition for a gang that was not placed: the planner's line, its details, and the gangs ahead.
const char *gang_place_message(const struct gang_place_request *r, const struct gang *gang, const struct placement *p,
                               struct arena *a);

// ", 2 pods of lower priority are evicted for them"; "" if none is.
const char *gang_place_victims(const struct placement *p, struct arena *a);
