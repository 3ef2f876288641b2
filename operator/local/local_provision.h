// SPDX-License-Identifier: Apache-2.0
// The groups and PlacementGroups that clients create in a local run, with group.create and group.delete as in a
// cluster. Each one is deleted with its session, or stays until the run ends. If a group does not fit now, it waits for
// others to leave.
#pragma once

#include "operator/local/local_group.h"

struct local_provision;

enum { LOCAL_PROVISION_MAX = 256, LOCAL_PROVISION_ABANDONED_MS = 120 * 1000 };

// `nodes` is the number of nodes of the run; `gpus` and `cpus`: of each node. The run's ended() is not used.
struct local_provision *local_provision_new(struct loop *loop, int nodes, int gpus, int cpus, const char *map);
// Call it before the gateway serves anybody.
void local_provision_run(struct local_provision *d, const struct local_run *run);
// Call it after the gateway is freed, which no group may outlive. Accepts NULL.
void local_provision_free(struct local_provision *d);
struct provisioner local_provision_provisioner(struct local_provision *d);

struct local_group *local_provision_find(const struct local_provision *d, const char *uid); // NULL = there is none
// NULL = it is not known.
const char *local_provision_node(const struct local_provision *d, const char *uid, uint32_t rank);
void local_provision_reap(struct local_provision *d);
void local_provision_stop(struct local_provision *d, bool again); // `again`: kill processes that do not end
bool local_provision_idle(const struct local_provision *d);       // no process of a group runs
