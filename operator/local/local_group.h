// SPDX-License-Identifier: Apache-2.0
// One group of a local run: an agent that starts its processes, stays between attempts, and restarts them as the
// group's spec says. Its end does not affect other groups.
#pragma once

#include "operator/gateway/gateway.h"
#include "operator/local/manifest.h"

#include <sys/types.h>

struct local_group;

struct local_run { // what the groups of a run share; borrowed
    struct loop *loop;
    struct gateway *gateway;
    const char *agent, *url; // the program, and where workers connect
    bool several;            // groups: lines that they print begin with their names
    // No process of it runs any more, and none will; it is stopped(), or calls are refused. Only from
    // local_group_reap() and timers.
    void (*ended)(void *ctx, struct local_group *g);
    void *ctx;
};

struct local_job { // what is run
    const char *ns, *name;
    int processes;
    const char *const *command; // NULL-terminated
    struct manifest manifest;   // taken over; all zero = there is none
};

// GPUs of this machine, and whether each process sees its own only.
struct local_gpus {
    const char *list;         // of all, as CUDA_VISIBLE_DEVICES has it; NULL = whatever there is
    const char *of_processes; // of each, as cadre-agent run --process-gpus
    bool own;
};

// Calls may wait for it from now on. Nothing runs before local_group_start().
struct local_group *local_group_new(const struct local_run *run, const struct local_job *job);
void local_group_free(struct local_group *g); // accepts NULL; an agent that runs is told to end, nobody waits for it
int local_group_start(struct local_group *g, const struct local_gpus *gpus, struct err *err); // gpus may be NULL
// Told to end, twice or not; why: for those who call it. False = nothing runs, and nothing will: ended() is not called.
bool local_group_stop(struct local_group *g, const char *why);
// Its processes are started again, as if it were new; calls wait for them. False = nothing runs: local_group_start() is
// due.
bool local_group_restart(struct local_group *g);
// What its next processes run. The manifest is taken over; ERR_INVALID: it has other ranks, and is not.
int local_group_change(struct local_group *g, const struct local_job *job, struct err *err);
void local_group_reap(struct local_group *g); // after SIGCHLD
// While nothing has been started: what it waits for, for those who wait with it.
void local_group_waits(struct local_group *g, const char *why);

const char *local_group_uid(const struct local_group *g);
const struct workergroup *local_group_spec(const struct local_group *g); // NULL = it has no manifest
int local_group_exit_code(const struct local_group *g);                  // of the process that failed first
bool local_group_stopped(const struct local_group *g);                   // it was told to end
bool local_group_served(const struct local_group *g);                    // a worker has connected once
bool local_group_runs(const struct local_group *g);                      // its agent does
void local_group_joined(struct local_group *g);                          // a worker has connected
int local_group_kill(struct local_group *g, uint32_t attempt, uint32_t rank, struct err *err);
