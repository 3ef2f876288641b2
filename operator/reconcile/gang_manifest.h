// SPDX-License-Identifier: Apache-2.0
// The manifests of a gang's pods and Service, for both kinds of owner: names, labels, owner references. They are
// deterministic, so nothing can be created twice. Also the labels and annotations of existing pods, which are read
// here.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/podagent.h"
#include "operator/api/podtemplate.h"

#define LABEL_INDEX "cadre.dev/index"
#define LABEL_INCARNATION "cadre.dev/incarnation"
#define LABEL_ATTEMPT "cadre.dev/attempt"
#define LABEL_MANAGED_BY "app.kubernetes.io/managed-by"
#define MANAGED_BY "cadre"
#define ANNOTATION_SPEC_HASH "cadre.dev/spec-hash"

struct agent_setup; // operator/reconcile/view.h

struct gang_pod {                    // a pod to create
    const struct agent_setup *setup; // NULL = without an agent
    const char *name, *pin;          // pin NULL = for a dry run
    int32_t index, incarnation;
    int32_t attempt; // 0 = it has none: the pod of a PlacementGroup
    uint64_t hash;   // of everything that it is made from
};

struct owner gang_manifest_owner(const struct object *o);
const char *gang_manifest_pod_name(const char *gang, int32_t index, int32_t incarnation, struct arena *a);
// As JSON. `gang` is its name, and the label of the gang's pods. With `selects`, it selects these pods.
const char *gang_manifest_service(const struct object *owner, const char *gang, bool selects, int32_t port,
                                  struct arena *a);
// Names, labels, owner and pin of the pod. The caller adds annotations, environment and agent.
struct pod_render gang_manifest_pod(const struct object *owner, const char *gang, const struct gang_pod *p,
                                    struct arena *a);
// Sets what all pods with an agent have in common.
void gang_manifest_agent(const struct agent_setup *setup, struct pod_agent *ret);

// The number in this label of one of our pods; -1 if the label is missing or contains no number.
int32_t pod_label_number(const struct pod *p, const char *key);
uint64_t pod_spec_hash(const struct pod *p); // 0 if missing
bool pod_has_agent(const struct pod *p);
// Returns true if the agent of the pod trusts another CA than the one of these keys (struct agent_setup). It cannot
// connect then. A pod without the annotation counts as made with these keys. The install key does not matter here:
// agents show the token of their pod.
bool pod_trusts_others(const struct pod *p, const char *keys_id);
