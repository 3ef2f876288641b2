// SPDX-License-Identifier: Apache-2.0
// Answers of the API server to dry runs. Objects of one namespace with equal pods share them. Many equal objects at the
// same time need one dry run. Objects that follow within seconds need none. Objects do not share a refusal.
#pragma once

#include "operator/exec/observations.h"
#include "operator/kube/kube_client.h"

// The operator forgets answers soon, because limit ranges and webhooks may change. The number of answers is bounded.
enum { DRYRUNS_FRESH_MS = 30 * 1000, DRYRUNS_MAX = 64, DRYRUNS_ANSWER_MAX = 64 * 1024 };

struct dryruns;

struct dryruns *dryruns_new(const struct clock *clock); // borrowed
void dryruns_free(struct dryruns *d);                   // no dryruns_fn may be waiting; accepts NULL
void dryruns_forget(struct dryruns *d);                 // forgets all answers, also those that have not come yet

// Looks up the dry runs that the plan asks for, and copies the answers that it has into the observations. Returns true
// if it had any: a new decision can then use them.
bool dryruns_answer(struct dryruns *d, const struct object *owner, const struct plan *p, struct observations *n);

// Gets the same arguments as kube_done_fn. If `response` is NULL and err->code is 0, the answer was for one object
// only, and the caller makes its own dry run.
typedef void (*dryruns_fn)(void *ctx, const struct kube_response *response, const struct err *err);
// Returns true if the same dry run is in progress. `fn` is then called when it ends. If this returns false, the caller
// makes the dry run, and calls dryruns_tell() with the answer.
bool dryruns_join(struct dryruns *d, const struct object *owner, uint64_t hash, dryruns_fn fn, void *ctx);
void dryruns_tell(struct dryruns *d, const struct object *owner, uint64_t hash, const struct kube_response *response,
                  const struct err *err);
