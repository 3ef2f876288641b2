// SPDX-License-Identifier: Apache-2.0
// The groups and PlacementGroups that clients create in a local run, with group.create and group.delete as in a
// cluster. Each one is deleted with its session, or stays until the run ends. A group that does not fit now waits for
// the others.
#pragma once

#include "operator/local/local_group.h"

struct desk;

enum { DESK_ENTRIES_MAX = 256, DESK_ABANDONED_MS = 120 * 1000 };

// nodes: of the run; gpus, cpus: of each. The run's ended() is not used.
struct desk *desk_new(struct loop *loop, int nodes, int gpus, int cpus, const char *map);
void desk_run(struct desk *d, const struct local_run *run); // before anybody is served
void desk_free(struct desk *d); // accepts NULL; after the gateway, which no group may outlive
struct provisioner desk_provisioner(struct desk *d);

struct local_group *desk_find(const struct desk *d, const char *uid);        // NULL = there is none
const char *desk_node(const struct desk *d, const char *uid, uint32_t rank); // NULL = not known
void desk_reap(struct desk *d);
void desk_stop(struct desk *d, bool again); // again: processes that do not end are killed
bool desk_idle(const struct desk *d);       // no process of a group runs
