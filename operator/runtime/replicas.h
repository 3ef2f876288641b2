// SPDX-License-Identifier: Apache-2.0
// The replicas of the operator: the pods with the labels of our own pod. Each replica knows only its own calls. A
// program that wants to know all calls learns here which other replicas to ask. This module also finds operators of
// other installations that handle the same groups. It reads the label cadre.dev/watches of their pods: a namespace, or
// all.namespaces.
#pragma once

#include "operator/runtime/store.h"

struct replicas;

// Gets the names of the running replicas that are not being deleted, as a JSON list in natural order. They are NULL if
// our own pod is not known: outside the cluster, and until the first list of pods. The names are valid until the next
// call. It is called by replicas_new(), and inside a change of the store.
typedef void (*replicas_fn)(void *ctx, const char *names);

// A pod of another installation has begun to run, and it watches the same namespaces. It is called inside a change of
// the store, once each time such a pod begins to run. When our own pod becomes known, it is called for each such pod.
typedef void (*replicas_rival_fn)(void *ctx, const char *ns, const char *pod, const char *watches);

// `ns` and `name`: of our own pod; they are copied. Subscribes to the store of pods, which must outlive it.
struct replicas *replicas_new(struct store *pods, const char *ns, const char *name, replicas_fn changed,
                              replicas_rival_fn rival, void *ctx);
void replicas_free(struct replicas *r); // the store must not change any more; accepts NULL
