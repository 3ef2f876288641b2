// SPDX-License-Identifier: Apache-2.0
// Names, labels and environment of the objects that a WorkerGroup owns. They are deterministic, so nothing can be
// created twice.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/podtemplate.h"
#include "operator/api/workergroup.h"

#define LABEL_GROUP "cadre.dev/group"
#define LABEL_INDEX "cadre.dev/index"
#define LABEL_INCARNATION "cadre.dev/incarnation"
#define LABEL_ATTEMPT "cadre.dev/attempt"
#define LABEL_MANAGED_BY "app.kubernetes.io/managed-by"
#define MANAGED_BY "cadre"
#define ANNOTATION_SPEC_HASH "cadre.dev/spec-hash"

// The names of environment variables that a user may not set: NULL-terminated.
extern const char *const reserved_env[];

int32_t group_world_size(const struct workergroup *wg);
const char *group_master_host(const struct workergroup *wg, struct arena *a); // <group>-0.<group>.<ns>.svc
const char *group_selector(const struct workergroup *wg, struct arena *a);
struct owner group_owner(const struct workergroup *wg);
const char *group_pod_name(const struct workergroup *wg, int32_t index, int32_t incarnation, struct arena *a);
const char *group_service(const struct workergroup *wg, struct arena *a); // as JSON; addresses.c gives it endpoints

// Covers everything that the pods are made from: a change means new pods.
uint64_t group_spec_hash(const struct workergroup *wg, uint64_t template_hash);
// Covers the rest, which only the processes of an agent are made from: a change restarts them in their pods. 0 with the
// runtime Plain.
uint64_t group_worker_hash(const struct workergroup *wg);
const char *group_hash_text(uint64_t hash, struct arena *a); // one of these hashes as status.revision shows it

struct agent_setup; // operator/reconcile/view.h

// The pod of one replica as JSON. With pin NULL, it is for a dry run.
struct group_pod {
    const struct agent_setup *setup; // runtime Agent only
    int32_t index, attempt, incarnation;
    uint64_t spec_hash;
    const char *name, *pin;
};
int group_pod_render(const struct workergroup *wg, const struct group_pod *p, struct arena *a, const char **ret_json,
                     struct err *err);

// The number in this label of one of our pods; -1 if the label is missing or contains no number.
int32_t pod_label_number(const struct pod *p, const char *key);
uint64_t pod_spec_hash(const struct pod *p); // 0 if missing
bool pod_has_agent(const struct pod *p);
// The agent of the pod trusts another CA than the one of these keys (struct agent_setup), so it cannot connect. A pod
// without the annotation counts as made with these keys. The install key does not matter here: agents show the token of
// their pod.
bool pod_trusts_others(const struct pod *p, const char *keys_id);
