// SPDX-License-Identifier: Apache-2.0
// The state that the steps of one decision about a WorkerGroup share. Private to operator/reconcile.
#pragma once

#include "operator/api/podtemplate.h"
#include "operator/reconcile/gang.h"
#include "operator/reconcile/group_pods.h"

// The status that a decision leads to, without its conditions.
struct group_progress {
    bool of_before; // an earlier spec runs on: its world size, GPUs, address and strategy stay in the status
    int32_t attempt, restarts, restarts_counted, restarts_in_a_row;
    struct group_failure last_failure;
    struct group_revision revision;
};

enum { DIAL_IN_MIN_MS = 10000 }; // time for agents to come back before the group counts as not ready

struct group_decision {
    struct gang_decision gang; // first member: decision_of() in group_gang.c relies on it
    const struct group_view *v;
    const struct workergroup *wg;
    struct arena *a;
    struct plan *plan;
    struct template_facts template;
    uint64_t spec_hash;
    struct group_revision revision; // of the present spec; without an attempt
    struct group_pods pods;
    struct group_view view_running; // of v->as_running, if there is one
    struct group_progress progress;
    bool pods_leave; // this decision deletes all of the group's own pods
};

// Processes of an earlier spec stay. From here on, the decision looks at that spec, and the status describes it.
void group_decision_look_back(struct group_decision *d);
void group_decision_bound(struct group_decision *d); // sets Scheduled: all pods are bound
bool group_decision_was_whole(const struct group_decision *d);
bool group_decision_worker_differs(const struct group_decision *d); // the processes were made from another spec.worker
// Returns true if the status was written for another spec: the pods or the processes have to be made again for the
// present one.
bool group_decision_asks_for_more(const struct group_decision *d);
// Kubernetes writes whole seconds, rounded down. If a time looks like that, returns the latest time that it may mean. 0
// stays 0.
int64_t group_decision_at_latest_ms(int64_t ms);
