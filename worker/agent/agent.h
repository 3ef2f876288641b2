// SPDX-License-Identifier: Apache-2.0
// The groups of one pod and their processes. The agent carries out what the supervisors decide. It does not know who
// sends the commands: the operator over a connection, or `cadre-agent run`.
#pragma once

#include "worker/agent/command.h"
#include "worker/agent/rank_output.h"
#include "worker/agent/supervisor.h"
#include "worker/agent/template.h"

enum { AGENT_GROUPS_MAX = 64 };

struct agent;

struct agent_report {
    enum supervisor_report type;
    const char *group;
    int attempt;
    int rank, code, signal; // SUPERVISOR_REPORT_EXITED
    int port;               // UNPREPARED: as in struct supervisor_action
    const char *message;    // UNPREPARED, and EXITED if the command could not be run; else ""
    bool oom;               // EXITED: the kernel killed it because the pod's memory was used up
    const char *last;       // EXITED: the last lines that the process printed, any bytes
    size_t last_len;
    const char *slow;                    // STARTED: as agent_slow()
    const struct supervisor *supervisor; // STARTED: knows which processes run now; else NULL
};

struct agent_config {
    struct loop *loop;
    int out, err;                        // the pod's log
    const char *const *env;              // of the pod, NULL-terminated
    const char *const *argv;             // the pod's command, for groups without a command of their own; NULL = none
    const char *brought;                 // as in struct environment_group
    struct template_preforked preforked; // becomes the template of the first group that wants one
    int gpus;                            // how many the pod has, used if its environment has no list; GPUS_UNKNOWN
    // Called from the loop, and inside agent_command(). It may call agent_command() and agent_shutdown().
    void (*report)(void *ctx, const struct agent_report *r);
    // A process has printed a line. NULL = nobody listens.
    void (*printed)(void *ctx, const char *group, int rank, const char *text, size_t len);
    void (*done)(void *ctx); // called once, after agent_shutdown(): all processes are gone and the log is written
    void *ctx;
};

struct agent *agent_new(const struct agent_config *c);
void agent_free(struct agent *a); // kills what still runs

// ERR_CONFLICT: the group's supervisor refuses the command. ERR_LIMIT: there are too many groups.
int agent_command(struct agent *a, struct command *c, struct err *err);
// Stops everything. A second call may shorten the grace time.
void agent_shutdown(struct agent *a, int64_t grace_ms);

struct rank_output *agent_output(struct agent *a); // for rank_output_say()
struct pod_archives *agent_pod_archives(const struct agent *a);
// The only reaper of this process. Other children are started with it, too.
struct child_reaper *agent_reaper(struct agent *a);
size_t agent_group_count(const struct agent *a);
const struct supervisor *agent_group_at(const struct agent *a, size_t i);
// Returns why a process was started without its template. If there are several such processes, it is the first. "" =
// there is none.
const char *agent_slow(const struct agent *a, size_t group);
// Tells what is known about a process that has exited. Returns false if there was no process of that rank.
bool agent_exit_report(const struct agent *a, size_t group, int rank, struct agent_report *ret);
