// SPDX-License-Identifier: Apache-2.0
// One group of a local run. An agent starts its processes, stays between attempts, and restarts them as the spec of the
// group says. The end of a group does not affect other groups.
#pragma once

#include "operator/gateway/gateway.h"
#include "operator/local/claim.h"
#include "operator/local/manifest.h"
#include "operator/local/restart.h"

#include <sys/types.h>

struct local_group;

struct local_run { // what the groups of a run share; borrowed
    struct loop *loop;
    struct gateway *gateway;
    const char *agent, *url; // the path of cadre-agent, and the address where workers connect
    bool several;            // there may be several groups: lines that they print begin with the name of their group
    // Called when no process of the group runs any more, and none will. Either the group was `asked` to stop, or calls
    // are refused from now on. Only local_group_reap() and timers call it.
    void (*ended)(void *ctx, struct local_group *g);
    void *ctx;
};

struct exit_note { // the first process of an attempt that failed; the others were ended because of it
    uint32_t attempt, rank;
    int code;    // 0 = not known
    char *words; // the last lines that it printed; NULL = none
};

struct local_group {
    char uid[32];
    struct manifest manifest; // what it runs; its `group` is NULL if the command line says what to run
    bool served;              // set by its owner: a process has connected, so there may be clients, and more may come
    bool asked;               // it was asked to stop
    pid_t agent;              // 0 = it has ended, and nothing runs
    int exit_code;            // of the process that failed first
    // private:
    struct local_run run;
    char *ns, *name;
    char *prefix;                   // of the lines that it prints
    struct rank_output *output;     // passes on what the agent prints
    struct output_process *printed; // output of the agent that runs, or ran last; NULL = none has run
    struct agent_control *control;
    struct loop_timer *again;
    struct restarts restarts;
    uint32_t attempt;
    struct exit_note failed;
    char *refusal; // the answer to calls after the processes have ended for good
    char *status;  // what it waits for
    struct claimed_gpus gpus;
    bool new_agent;  // start a new agent when this one has ended
    bool over;       // the agent was told to end, because there is no further attempt
    bool changed;    // the agent was started with an older manifest
    const char *why; // why there is no further attempt; NULL = the processes have succeeded
};

// Makes a group. Calls may wait for it from now on. Nothing runs before local_group_start(). Takes ownership of the
// manifest.
struct local_group *local_group_new(const struct local_run *run, const char *ns, const char *name,
                                    const struct manifest *manifest);
void local_group_free(struct local_group *g); // tells a running agent to end, and does not wait for it; accepts NULL
// `gpus` NULL, or with a NULL `list`: the processes may use all GPUs.
int local_group_start(struct local_group *g, const struct claimed_gpus *gpus, struct err *err);
// Tells the group to end. It may be called again. Calls are refused with `why`. Returns false if nothing runs: ended()
// is then not called.
bool local_group_stop(struct local_group *g, const char *why);
// Starts the processes again, as for a new group. Calls wait for them. Returns false if nothing runs: call
// local_group_start() then.
bool local_group_restart(struct local_group *g);
// Sets what its next processes run. Takes ownership of the manifest. ERR_INVALID: the manifest has other numbers of
// replicas or of their ranks, and still belongs to the caller.
int local_group_change(struct local_group *g, const struct manifest *manifest, struct err *err);
void local_group_reap(struct local_group *g); // call it after SIGCHLD
// Says what the group waits for, as long as nothing was started. Callers that wait for the group see it.
void local_group_waits(struct local_group *g, const char *why);

int local_group_kill(struct local_group *g, uint32_t attempt, uint32_t rank, struct err *err);
