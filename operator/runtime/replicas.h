// SPDX-License-Identifier: Apache-2.0
// Which replicas of the operator there are: the pods with our own one's labels. Each knows its own calls only; whoever
// wants all of them learns here whom else to ask.
#ifndef CADRE_RUNTIME_REPLICAS_H
#define CADRE_RUNTIME_REPLICAS_H

#include "operator/runtime/store.h"

struct replicas;

// Of the operator that runs in the pod ns/name. Subscribes to the store of pods, which lives longer; copies the names.
struct replicas *replicas_new(struct store *pods, const char *ns, const char *name);
void replicas_free(struct replicas *r); // when the store changes no more; accepts NULL

// The names of those that run and are not being deleted, as a JSON list in natural order; valid until a pod changes.
// NULL where our own pod is not known: outside of the cluster, and until the first list of pods.
const char *replicas_json(struct replicas *r);

#endif
