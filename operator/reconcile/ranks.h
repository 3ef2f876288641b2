// SPDX-License-Identifier: Apache-2.0
// What the agents in a group's present pods report about its processes: counted once, then only read. Part of
// group_pods.
#pragma once

#include "operator/reconcile/group_view.h"

struct ranks {
    const struct agent_facts **facts; // by index; NULL = there is no pod
    int32_t connected;                // agents that can be told something
    int32_t started;                  // replicas whose processes were started for the present attempt
    int32_t told;                     // that know of the present attempt: it began, when all of them were there
    int32_t ready_replicas, ready_workers;
    bool rank_zero_exited;               // with exit code 0
    int32_t exited;                      // ranks that have ended with exit code 0
    int32_t to_restart;                  // ranks whose failure was counted and that wait for their next process
    const struct agent_process *culprit; // of the failures that were not counted yet the first one; NULL = none
    int32_t culprit_index;               // its replica
    int64_t ending_ms;                   // since when the first of their pods is being ended; 0 = none is
    int64_t away_ms;                     // when the last of those agents that are away was lost; 0 = never seen
};

enum rank_state { RANK_WAITING, RANK_READY, RANK_EXITED, RANK_FAILED, RANK_TO_RESTART };

// The processes of a replica were started and not stopped since.
bool ranks_started(const struct workergroup *wg, int32_t attempt, const struct agent_facts *f);
enum rank_state ranks_state(const struct group_view *v, int32_t attempt, const struct agent_facts *f, int32_t rank);

// It can be told something. Or another replica says that it could: then nobody misses it.
static inline bool ranks_agent_there(const struct agent_facts *f)
{
    return f->connected || f->seen_by;
}

// `facts`: of the present pods, by index.
void ranks_take(const struct group_view *v, int32_t attempt, const struct agent_facts **facts, struct ranks *ret);

// The failure of a process in words for lastFailure; pod and node are the caller's.
struct group_failure ranks_failure(const struct group_view *v, const struct agent_process *p, struct arena *a);
