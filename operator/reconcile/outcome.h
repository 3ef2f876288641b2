// SPDX-License-Identifier: Apache-2.0
// The status that a decision leads to, and the writes and events that take the object there.
#ifndef CADRE_RECONCILE_OUTCOME_H
#define CADRE_RECONCILE_OUTCOME_H

#include "operator/reconcile/census.h"

enum outcome_condition { ACCEPTED, SCHEDULED, READY, SUCCEEDED, FAILED, SUSPENDED, OUTCOME_CONDITIONS };

struct outcome {
    // One that is not set keeps the generation that it was set for: it says nothing about a newer spec.
    struct condition conditions[OUTCOME_CONDITIONS];
    int64_t generation;
    bool of_before; // an earlier spec runs on: its world size, GPUs, address and strategy stay in the status
    int32_t attempt, incarnation, restarts, restarts_counted, restarts_in_a_row;
    struct group_failure last_failure;
    struct group_revision revision;
};

// As the object stands. Before the first visit the group is Unknown, Pending, and neither ended nor suspended.
void outcome_init(struct outcome *o, const struct workergroup *wg, const struct census *c);
// Neither ended nor suspended.
void outcome_alive(struct outcome *o);
void outcome_set(struct outcome *o, enum outcome_condition which, enum condition_status status, const char *reason,
                 const char *message);
// The group is not up, for the same reason in Scheduled and Ready.
void outcome_wait(struct outcome *o, const char *reason, const char *message);
const struct condition *outcome_old(const struct workergroup *wg, enum outcome_condition which); // NULL if never set
bool outcome_was(const struct workergroup *wg, enum outcome_condition which);                    // the status says True
bool outcome_old_spec(const struct workergroup *wg); // the status does not know the present generation of the spec

bool outcome_reason_in(const char *reason, const char *const *list); // NULL-terminated
// What a gang gave its pods up for says more than that they are still going, and does not change with each that goes.
bool outcome_keeps_reason(const struct condition *ready);

// Adds the status write and its events to the plan, if anything differs. `now`: at once and before everything else
// (a new attempt); otherwise passing states may wait a moment for what comes next, so that a group that starts quickly
// costs one write, and new numbers in the message of one that waits are gathered for longer.
void outcome_commit(const struct outcome *o, const struct group_view *v, const struct census *c, bool now,
                    struct arena *a, struct plan *plan);
// How long a passing status waits, of a WorkerGroup or a PlacementGroup: `first` of its life; `only_words` of a message
// are new; `moving` objects whose status waits. A write of a status costs the API server as much as the creation of
// several pods: when hundreds start at once, what passes for each of them would hold up what all of them wait for.
int64_t outcome_settle_ms(bool first, bool only_words, int32_t moving);

#endif
