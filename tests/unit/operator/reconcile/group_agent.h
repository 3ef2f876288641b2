// SPDX-License-Identifier: Apache-2.0
// The agent of a pod in a simulated world (gang_world.h). It is the real state machine of worker/agent with its real
// messages, over processes that exist only here. It has a line to each process of the operator, which may break at any
// time.
#pragma once

#include "operator/agents/agents.h"
#include "worker/agent/supervisor.h"

enum { SIM_LINES = 2 }; // to the leader and to its standby

struct sim_world;
struct sim_pod;
struct sim_agent;

struct sim_order { // a command on its way to the agent
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
    struct supervisor *supervisor; // of the group; NULL: the agent has heard nothing about it
    enum sim_process_state process;
    int attempt;        // of the process
    int worker_version; // the version with which the process was started
    int member;         // attempt of the process that takes calls, 0 = none
    int64_t stop_at_ms; // it got SIGTERM, and ends at this time; 0 = it did not
    bool ending;        // it was told to end with its group
    bool resolving;     // it is looking up its MASTER_ADDR
    bool hung;          // it does not say or do anything any more
    bool mute;          // its messages do not arrive; its processes run on
    bool away;          // it is mute, and the operator has noticed
    struct sim_line *lines[SIM_LINES];
};

struct sim_agent *sim_agent_new(const char *pod_uid, const char *pod_name, int rank);
void sim_agent_free(struct sim_agent *g); // also ends its processes and cuts its lines
// Time passes: the agent connects and receives commands, and its processes start and end.
void sim_agent_live(struct sim_agent *g, struct sim_world *w);
void sim_agent_cut(struct sim_agent *g, int line); // the connection is lost
void sim_agent_promote(struct sim_agent *g);       // swaps its lines
void sim_agent_exit(struct sim_agent *g, struct sim_world *w, int exit_code,
                    int signal);              // its process ends, if it runs
void sim_agent_lose_gpu(struct sim_agent *g); // a GPU of its process is lost; the operator hears about it
