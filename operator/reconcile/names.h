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

// The names that a user may not set: NULL-terminated.
extern const char *const reserved_env[];

int32_t group_world_size(const struct workergroup *wg);
const char *group_master_host(const struct workergroup *wg, struct arena *a); // <group>-0.<group>.<ns>.svc
const char *group_selector(const struct workergroup *wg, struct arena *a);
struct owner group_owner(const struct workergroup *wg);
const char *group_pod_name(const struct workergroup *wg, int32_t index, int32_t incarnation, struct arena *a);
const char *group_service(const struct workergroup *wg, struct arena *a); // as JSON; addresses.c gives it endpoints

// Everything that the pods are made from: a change means new pods.
uint64_t group_spec_hash(const struct workergroup *wg, uint64_t template_hash);
// What the processes of an agent are made from besides: a change restarts them where they are. 0 with the runtime
// Plain.
uint64_t group_worker_hash(const struct workergroup *wg);
const char *group_hash_text(uint64_t hash, struct arena *a); // of either, as status.revision has it

struct agent_setup; // group_reconcile.h

// The pod of one replica as JSON; pin NULL = for a dry run.
struct group_pod {
    const struct agent_setup *setup; // runtime Agent only
    int32_t index, attempt, incarnation;
    uint64_t spec_hash;
    const char *name, *pin;
};
int group_pod_render(const struct workergroup *wg, const struct group_pod *p, struct arena *a, const char **ret_json,
                     struct err *err);

// A number label of a pod of ours; -1 if it is missing or no number.
int32_t pod_label_number(const struct pod *p, const char *key);
uint64_t pod_spec_hash(const struct pod *p); // 0 if missing
bool pod_has_agent(const struct pod *p);
// Its agent trusts another authority than the one of these keys (struct agent_setup), so it cannot dial in. A pod that
// does not say counts as made with them. The install key is of no account here: agents show the token of their pod.
bool pod_trusts_others(const struct pod *p, const char *keys_id);
