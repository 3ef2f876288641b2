// SPDX-License-Identifier: Apache-2.0
// The replicas of the operator: the pods with the labels of our own pod. Each replica knows only its own calls. A
// program that wants to know all of them learns here whom else to ask. Also the operators of other installations that
// handle the same groups, by the label cadre.dev/watches of their pods: a namespace, or all.namespaces.
#pragma once

#include "operator/runtime/store.h"

struct replicas;

// A pod of another installation that watches what ours does runs by now. From a change of the store, once for each time
// that it begins to run, and for each that runs when our own pod becomes known.
typedef void (*replicas_rival_fn)(void *ctx, const char *ns, const char *pod, const char *watches);

// Of the operator that runs in the pod ns/name. Subscribes to the store of pods, which lives longer; copies the names.
// `rival` may be NULL.
struct replicas *replicas_new(struct store *pods, const char *ns, const char *name, replicas_rival_fn rival, void *ctx);
void replicas_free(struct replicas *r); // when the store changes no more; accepts NULL

// The names of those that run and are not being deleted, as a JSON list in natural order; valid until a pod changes.
// NULL where our own pod is not known: outside of the cluster, and until the first list of pods.
const char *replicas_json(struct replicas *r);
