// SPDX-License-Identifier: Apache-2.0
// The agent of a pod in a simulated world (gang_world.h): the real state machine of worker/agent and its real words,
// over processes that exist only here, with a line to each process of the operator that may break at any time.
#pragma once

#include "operator/agents/agents.h"
#include "worker/agent/supervisor.h"

enum { SIM_LINES = 2 }; // to the leader and to its standby

struct sim_world;
struct sim_pod;
struct sim_agent;

struct sim_order { // on its way to the agent
    uint8_t type;
    char *body;
};

struct sim_line {
    struct sim_agent *agent;
    struct agents *registry;
    struct connected_agent *peer; // as the registry knows it; NULL = not connected
    struct sim_order *orders;
    size_t n_orders;
};

enum sim_process_state { SIM_PROCESS_NONE, SIM_PROCESS_STARTING, SIM_PROCESS_RUNNING };

struct sim_agent { // of a pod with one process
    const char *pod_uid, *pod_name;
    int rank;
    struct supervisor *supervisor; // of the group; NULL: nothing was heard of it
    enum sim_process_state process;
    int attempt;        // of the process
    int worker_version; // that it was started with
    int member;         // attempt of the process that takes calls, 0 = none
    int64_t stop_at_ms; // it has got SIGTERM, and ends then; 0 = it has not
    bool ending;        // it was told to end with its group
    bool resolving;     // its MASTER_ADDR is being looked up
    bool hung;          // it neither says nor does anything any more
    bool mute;          // what it says does not arrive; its processes run on
    bool away;          // and the other side has noticed
    struct sim_line *lines[SIM_LINES];
};

struct sim_agent *sim_agent_new(const char *pod_uid, const char *pod_name, int rank);
void sim_agent_free(struct sim_agent *g); // with its processes; the lines are cut
// Time passes: it dials in, gets what was sent, its processes start and end.
void sim_agent_live(struct sim_agent *g, struct sim_world *w);
void sim_agent_cut(struct sim_agent *g, int line); // the connection is lost
void sim_agent_promote(struct sim_agent *g);       // swaps its lines
void sim_agent_exit(struct sim_agent *g, struct sim_world *w, int exit_code,
                    int signal);              // its process ends, if it runs
void sim_agent_lose_gpu(struct sim_agent *g); // of its process; the operator hears of it
