// SPDX-License-Identifier: Apache-2.0
// Names, labels and environment of the objects that a WorkerGroup owns. They are deterministic, so nothing can be
// created twice.
#pragma once

#include "operator/api/workergroup.h"
#include "operator/reconcile/gang_manifest.h"

// The names of environment variables that a user may not set: NULL-terminated.
extern const char *const reserved_env[];

int32_t group_world_size(const struct workergroup *wg);
const char *group_master_host(const struct workergroup *wg, struct arena *a); // <group>-0.<group>.<ns>.svc
const char *group_selector(const struct workergroup *wg, struct arena *a);
const char *group_pod_name(const struct workergroup *wg, int32_t index, int32_t incarnation, struct arena *a);
const char *group_service(const struct workergroup *wg, struct arena *a); // as JSON; addresses.c gives it endpoints

// Covers everything that the pods are made from: a change means new pods.
uint64_t group_spec_hash(const struct workergroup *wg, uint64_t template_hash);
// Covers the rest, which only the processes of an agent are made from: a change restarts them in their pods. 0 with the
// runtime Plain.
uint64_t group_worker_hash(const struct workergroup *wg);
const char *group_hash_text(uint64_t hash, struct arena *a); // one of these hashes as status.revision shows it

// The pod of one replica as JSON.
int group_pod_render(const struct workergroup *wg, const struct gang_pod *p, struct arena *a, const char **ret_json,
                     struct err *err);
