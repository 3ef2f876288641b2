// SPDX-License-Identifier: Apache-2.0
// One group of a local run: an agent that starts its processes, stays between attempts, and restarts them as the
// group's spec says. Its end does not affect other groups.
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
    const char *agent, *url; // the program, and where workers connect
    bool several;            // groups: lines that they print begin with their names
    // No process of it runs any more, and none will; it was `asked` to stop, or calls are refused. Only from
    // local_group_reap() and timers.
    void (*ended)(void *ctx, struct local_group *g);
    void *ctx;
};

struct exit_note { // the first process of an attempt that failed, the others were ended for it
    uint32_t attempt, rank;
    int code;    // 0 = none is known
    char *words; // its last ones; NULL = none
};

struct local_group {
    char uid[32];
    struct manifest manifest; // what it runs; its `group` is NULL where the command line has said that
    bool served;              // a process has connected, so there may be clients, and more may come: its owner sets it
    bool asked;               // to stop
    pid_t agent;              // 0 = has ended, and nothing runs
    int exit_code;            // of the process that failed first
    // private
    struct local_run run;
    char *ns, *name;
    char *prefix;                   // of lines that it prints
    struct rank_output *output;     // passes what the agent prints on
    struct output_process *printed; // by the agent that runs, or ran last; NULL = none has
    struct agent_control *control;
    struct loop_timer *again;
    struct restarts restarts;
    uint32_t attempt;
    struct exit_note failed;
    char *refusal; // of calls, once the processes have ended for good
    char *status;  // what it waits for
    struct claimed_gpus gpus;
    bool anew;       // once its agent has ended
    bool over;       // its agent was told to end, for there is no further attempt
    bool changed;    // its agent was started for what ran before
    const char *why; // there is none; NULL: it has ended well
};

// Calls may wait for it from now on. Nothing runs before local_group_start().
// The manifest is taken over.
struct local_group *local_group_new(const struct local_run *run, const char *ns, const char *name,
                                    const struct manifest *manifest);
void local_group_free(struct local_group *g); // accepts NULL; an agent that runs is told to end, nobody waits for it
// `gpus`: whose `list` is NULL, or NULL: whatever there is.
int local_group_start(struct local_group *g, const struct claimed_gpus *gpus, struct err *err);
// Told to end, twice or not; why: for those who call it. False = nothing runs, and nothing will: ended() is not called.
bool local_group_stop(struct local_group *g, const char *why);
// Its processes are started again, as if it were new; calls wait for them. False = nothing runs: local_group_start() is
// due.
bool local_group_restart(struct local_group *g);
// What its next processes run. The manifest is taken over; ERR_INVALID: it has other ranks, and is not.
int local_group_change(struct local_group *g, const struct manifest *manifest, struct err *err);
void local_group_reap(struct local_group *g); // after SIGCHLD
// While nothing has been started: what it waits for, for those who wait with it.
void local_group_waits(struct local_group *g, const char *why);

int local_group_kill(struct local_group *g, uint32_t attempt, uint32_t rank, struct err *err);
