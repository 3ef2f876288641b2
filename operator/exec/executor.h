// SPDX-License-Identifier: Apache-2.0
// Carries out a plan. It runs the actions of a stage in parallel, with a bounded number of requests at a time. The next
// stage starts when all of them have succeeded. It puts the answers of the API server into the stores before the watch
// delivers them, into the cluster's accounting, and into the observations of the group.
#pragma once

#include "operator/agents/agents.h"
#include "operator/exec/dryruns.h"
#include "operator/kube/kube_client.h"
#include "operator/runtime/recorder.h"
#include "operator/runtime/store.h"

// Requests of one execution at a time. A big gang leaves room for others.
enum { EXECUTION_IN_FLIGHT_MAX = 256 };

struct executor { // borrowed; all executions share it
    struct kube_client *client;
    struct store *const *stores; // existing objects, indexed by enum kind
    struct cluster *cluster;
    struct recorder *recorder;
    struct agents *agents;   // NULL: there are no agents to command
    struct dryruns *dryruns; // NULL: each execution makes its own dry runs
    const struct clock *clock;
};

// After ERR_CONFLICT, the next decision waits for the watch, at most this long. The plan was made from an old version
// of the object. The new version leads to the next decision. An earlier attempt would only be refused again.
enum { EXECUTION_STALE_MS = 10 * 1000 };

// If all actions have succeeded, err->code is 0. Otherwise `err` is the first error: actions in progress have ended,
// and no later action has begun. The loop calls it exactly once.
typedef void (*execution_fn)(void *ctx, const struct err *err);

// Takes ownership of the arena, which contains the plan. Keeps a reference to `owner`, the object that the plan is for.
// `incarnation` is the one in its status. The observations must live until `done` is called.
void execution_start(const struct executor *x, const struct object *owner, int32_t incarnation, struct arena *arena,
                     const struct plan *plan, struct observations *observations, execution_fn done, void *ctx);
