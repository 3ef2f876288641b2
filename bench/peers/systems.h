// SPDX-License-Identifier: Apache-2.0
// The systems that are compared: the same pods in groups of GROUP_SIZE, bare or made by a manager from one object a
// group.
#pragma once

#include "bench/groups/world.h"

struct system {
    const char *name, *title; // for --system, and of its column
    int port;                 // of its manager's /readyz on 127.0.0.1; 0 = bare pods, without a manager
    enum pod_kind pods;       // of bare pods
    const char *api;          // "group/version" of its objects; NULL: WorkerGroups, or bare pods
    const char *kind, *plural, *spec;
};

extern const struct system system_pinned; // the floor
const struct system *system_find(const char *name);

// `groups` of them, named PREFIX0 and on; the clock starts. The pods of the very first object may wait `patience_s` for
// their manager's webhooks.
void system_create(const struct system *s, struct world *w, const char *prefix, int groups, int patience_s);
// Deletes them. The clock starts again for the end of all their pods.
void system_delete(const struct system *s, struct world *w, const char *prefix, int groups);
