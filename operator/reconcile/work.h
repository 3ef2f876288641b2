// SPDX-License-Identifier: Apache-2.0
// Shared by the steps of one decision about a WorkerGroup. Private to operator/reconcile.
#pragma once

#include "operator/api/podtemplate.h"
#include "operator/reconcile/gang.h"
#include "operator/reconcile/group_pods.h"

// The status that a decision leads to, but for its conditions.
struct group_progress {
    bool of_before; // an earlier spec runs on: its world size, GPUs, address and strategy stay in the status
    int32_t attempt, restarts, restarts_counted, restarts_in_a_row;
    struct group_failure last_failure;
    struct group_revision revision;
};

enum { DIAL_IN_MIN_MS = 10000 }; // for agents to come back before the group counts as not ready

struct work {
    struct gang_decision gang; // first: its owner finds the rest by it
    const struct group_view *v;
    const struct workergroup *wg;
    struct arena *a;
    struct plan *plan;
    struct template_facts template;
    uint64_t spec_hash;
    struct group_revision revision; // of the present spec; without an attempt
    struct group_pods pods;
    struct group_view view_before; // of v->before, if there is one
    struct group_progress progress;
    bool pods_leave; // all of its own are deleted by this decision
};

// What runs is of an earlier spec and stays: from here on all looks at that, and the status speaks of it.
void work_look_back(struct work *w);
void work_bound(struct work *w); // all pods are
bool work_was_whole(const struct work *w);
bool work_worker_differs(const struct work *w); // what runs was made from another spec.worker
// The status speaks of another spec than the present one, in what pods or processes are made from.
bool work_asks_for_more(const struct work *w);
// Kubernetes writes whole seconds, rounded down: when a time that looks like one may have been at the latest. 0 stays
// 0.
int64_t work_at_latest_ms(int64_t ms);
