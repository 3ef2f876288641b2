// SPDX-License-Identifier: Apache-2.0
// The reports of the agents in a group's present pods about its processes: counted once, then only read. Part of
// group_pods.
#pragma once

#include "operator/reconcile/group_view.h"

struct ranks {
    const struct agent_facts **facts; // by index; NULL = there is no pod
    int32_t connected;                // connected agents
    int32_t started;                  // replicas whose processes were started for the present attempt
    int32_t told; // agents that know the present attempt; the attempt began when all agents were there
    int32_t ready_replicas, ready_workers;
    bool rank_zero_exited;               // with exit code 0
    int32_t exited;                      // ranks that have ended with exit code 0
    int32_t to_restart;                  // ranks whose failure was counted, and that wait for their next process
    const struct agent_process *culprit; // the first failure that was not counted yet; NULL = none
    int32_t culprit_index;               // its replica
    int64_t ending_ms;                   // the kubelet has been ending the first of their pods since then; 0 = none
    int64_t away_ms;                     // when the last of the absent agents was lost; 0 = never seen
};

enum rank_state { RANK_WAITING, RANK_READY, RANK_EXITED, RANK_FAILED, RANK_TO_RESTART };

// Returns true if the processes of a replica were started and not stopped since.
bool ranks_started(const struct workergroup *wg, int32_t attempt, const struct agent_facts *f);
enum rank_state ranks_state(const struct group_view *v, int32_t attempt, const struct agent_facts *f, int32_t rank);

// Returns true if the agent is connected here, or another replica says that the agent is connected there.
static inline bool ranks_agent_there(const struct agent_facts *f)
{
    return f->connected || f->seen_by;
}

// `facts`: one per present pod, by index.
void ranks_take(const struct group_view *v, int32_t attempt, const struct agent_facts **facts, struct ranks *ret);

// The failure of a process in words, for lastFailure. The caller sets pod and node.
struct group_failure ranks_failure(const struct group_view *v, const struct agent_process *p, struct arena *a);
