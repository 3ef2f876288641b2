// SPDX-License-Identifier: Apache-2.0
// What the steps of one decision share. Private to operator/reconcile.
#ifndef CADRE_RECONCILE_WORK_H
#define CADRE_RECONCILE_WORK_H

#include "operator/api/podtemplate.h"
#include "operator/reconcile/gang.h"
#include "operator/reconcile/group_pods.h"

// The status that a decision leads to, but for its conditions.
struct group_progress {
    bool of_before; // an earlier spec runs on: its world size, GPUs, address and strategy stay in the status
    int32_t attempt, incarnation, restarts, restarts_counted, restarts_in_a_row;
    struct group_failure last_failure;
    struct group_revision revision;
};

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

// Deletes a pod unless that is under way; by force if its node will never confirm.
void work_delete(struct work *w, const struct pod *p, int stage);
void work_delete_all(struct work *w, int stage);
// Gives the present pods up for a new set of the same attempt: they never ran all together.
void work_roll_back(struct work *w, const char *reason, const char *message);
// A new attempt with new pods; or in the pods that are there, of which those that are lost themselves are replaced.
void work_begin_attempt(struct work *w, const char *reason, const char *message);
void work_restart_in_place(struct work *w, const char *message);

// What runs is of an earlier spec and stays: from here on all looks at that, and the status speaks of it.
void work_look_back(struct work *w);
void work_bound(struct work *w); // all pods are
// The status speaks of another spec than the present one, in what pods or processes are made from.
bool work_asks_for_more(const struct work *w);
// Counters come from the status, where others can write too: at the end of the range they stay there.
int32_t work_next(int32_t n);
// Kubernetes writes whole seconds, rounded down: when a time that looks like one may have been at the latest. 0 stays
// 0.
int64_t work_at_latest_ms(int64_t ms);
// The present spec cannot be run. What runs from an earlier one goes on, as long as it does.
void work_refuse(struct work *w, const char *reason, const char *message);

// failure.c
// A rank has failed, or a pod is lost.
void failure_answer(struct work *w);
const char *failure_text(struct work *w); // "rank 1 (pod x-1-0 on n1) failed with exit code 3: Error: its last line"
// The wait before the present attempt: what is left of it in milliseconds, and all of it. 0 = none (any more).
int64_t work_backoff_left(struct work *w, int64_t *ret_all);
const char *work_backoff_text(struct work *w);

// finish.c
bool finish_over(const struct work *w); // the status says that it has succeeded or failed
bool finish_succeeded(const struct work *w);
void finish_succeed(struct work *w);
void finish_fail(struct work *w, const char *reason, const char *message);
// activeDeadlineSeconds are over; if not yet, the plan looks again then.
bool finish_out_of_time(struct work *w);
void finish_late(struct work *w);
// Of a group that is over: nothing in the spec asks for another life.
bool finish_stays(const struct work *w);
void finish_stay(struct work *w);
// It stays so because its present spec cannot be run; Accepted says why.
void finish_refused(struct work *w);

// processes.c, runtime Agent
// All pods are bound, and no failure is to be answered: what their processes need, and Ready.
void processes_run(struct work *w);
// What runs of an older attempt is stopped.
void processes_hold(struct work *w, int stage);
// The group has ended: agents stop what runs and end with it, so that pods and logs stay, but hold no room.
void processes_end(struct work *w, int stage);
// On bundles: all that runs of the group is stopped, whatever attempt it is of; the pods stay.
void processes_leave(struct work *w, int stage);
// Some run for the present attempt, and others can never join them: none starts before all are prepared. So it is where
// the policy was another one when they were started, or a pod came anew behind a leader's back.
bool processes_mixed(const struct work *w);

// orders.c: what agents are told of the pod with this replica, in the arena
const char *order_stop(struct work *w, int32_t attempt, bool end);
const char *order_prepare(struct work *w, int32_t index);
const char *order_start(struct work *w, int32_t index, bool restart); // RESTART has only those processes that failed
bool order_restarts(struct work *w, int32_t index, int32_t local);    // that is one of them

// addresses.c
// Host names lead to the pods that there are.
void addresses_publish(struct work *w);

#endif
