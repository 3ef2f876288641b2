// SPDX-License-Identifier: Apache-2.0
// Carries out a plan. It runs the actions of a stage in parallel, with a bounded number of requests at a time. The next
// stage starts when all have succeeded. The answers of the API server go into the stores before the watch brings them,
// and into the cluster's accounting and the group's observations.
#pragma once

#include "operator/agents/agents.h"
#include "operator/exec/dryruns.h"
#include "operator/kube/kube_client.h"
#include "operator/runtime/recorder.h"
#include "operator/runtime/store.h"

enum { EXECUTION_IN_FLIGHT_MAX = 256 }; // requests of one execution: a big gang leaves room to others

struct executor { // what all executions share; borrowed
    struct kube_client *client;
    struct store *const *stores; // of what exists, by enum kind
    struct cluster *cluster;
    struct recorder *recorder;
    struct agents *agents;   // NULL: nobody to command
    struct dryruns *dryruns; // NULL: trials are not shared
    const struct clock *clock;
};

// After ERR_CONFLICT: the status was decided from an old view of its object. The watch brings the new one, which leads
// to the next decision; until then the same one would only be refused again. So long at the most.
enum { EXECUTION_STALE_MS = 10 * 1000 };

// err->code 0: all done. Else the first error; what was begun has ended too, nothing was begun after it.
// Exactly once, from the loop.
typedef void (*execution_fn)(void *ctx, const struct err *err);

// Takes the arena, in which the plan lives. Keeps a reference to the owner, the object that the plan is for, whose
// status names `incarnation`. The observations must live until `done`.
void execution_start(const struct executor *x, const struct object *owner, int32_t incarnation, struct arena *arena,
                     const struct plan *plan, struct observations *observations, execution_fn done, void *ctx);
