// SPDX-License-Identifier: Apache-2.0
// Answers of the API server to dry runs, shared by objects of one namespace with equal pods. Many equal objects at once
// cost one dry run; objects that follow within seconds cost none. A refusal is not shared.
#pragma once

#include "operator/exec/observations.h"
#include "operator/kube/kube_client.h"

// Answers are forgotten soon, because limit ranges, webhooks and the like may change; and there are not many.
enum { DRYRUNS_FRESH_MS = 30 * 1000, DRYRUNS_MAX = 64, DRYRUNS_ANSWER_MAX = 64 * 1024 };

struct dryruns;

struct dryruns *dryruns_new(const struct clock *clock); // borrowed
void dryruns_free(struct dryruns *d);                   // nobody waits; accepts NULL
void dryruns_forget(struct dryruns *d);                 // all answers, also those that are under way

// The plan asks for trials. The answer to some is known: the observations have it now, and a new decision can
// use it.
bool dryruns_answer(struct dryruns *d, const struct object *owner, const struct plan *p, struct observations *n);

// As kube_done_fn; response NULL and err->code 0: the answer was no one else's, the trial has to be made.
typedef void (*dryruns_fn)(void *ctx, const struct kube_response *response, const struct err *err);
// True: the same trial is under way, and `fn` is called when it ends. False: the caller is to make it, and to tell.
bool dryruns_join(struct dryruns *d, const struct object *owner, uint64_t hash, dryruns_fn fn, void *ctx);
void dryruns_tell(struct dryruns *d, const struct object *owner, uint64_t hash, const struct kube_response *response,
                  const struct err *err);
