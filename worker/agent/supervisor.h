// SPDX-License-Identifier: Apache-2.0
// The life of one group in a pod, as a state machine without I/O. Commands and events go in, actions come out.
//
//                 prepare           resolved, port free      start
//        IDLE ------------> PREPARING ---------> PREPARED ----------> RUNNING
//         ^ ^__ timeout _________|                   |                 |  restart: some again
//         |                                          | stop            | stop, or prepare of a newer attempt
//         |____________________ STOPPING <___________|_________________|
//           all processes gone (and on to PREPARING, if that is why they were stopped)
//
// Rules: a command for an older attempt is refused. A repeated command changes nothing, and the agent reports again. A
// process starts only after the previous process of its rank is gone, with all its children. A stopped attempt stays
// stopped until a newer one is prepared. Nothing here depends on whether the operator can be reached.
#pragma once

#include "worker/agent/command.h"

#include <stdbool.h>

struct supervisor;

enum supervisor_state {
    SUPERVISOR_IDLE,
    SUPERVISOR_PREPARING,
    SUPERVISOR_PREPARED,
    SUPERVISOR_RUNNING,
    SUPERVISOR_STOPPING
};

enum supervisor_process_state {
    SUPERVISOR_PROCESS_STARTING,
    SUPERVISOR_PROCESS_RUNNING,
    SUPERVISOR_PROCESS_EXITED, // its children may still be there
    SUPERVISOR_PROCESS_GONE,
};

struct supervisor_process {
    const struct environment_process *spec;
    struct command *command; // the command that started it; holds `spec`
    enum supervisor_process_state state;
    int code, signal; // once it has exited
    // The process that starts when this one is gone. NULL = none.
    const struct environment_process *next_spec;
    struct command *next;
};

enum supervisor_action_type {
    SUPERVISOR_RESOLVE,   // resolve `host`, then call supervisor_resolved()
    SUPERVISOR_TRY_PORT,  // test whether `port` is free, and call supervisor_port_tried() at once
    SUPERVISOR_LAUNCH,    // start `process`, then call supervisor_started(), _exited() and _gone()
    SUPERVISOR_TERMINATE, // stop the process of `rank` within grace_ms
    SUPERVISOR_KILL,      // end it at once, as if it had crashed
    SUPERVISOR_REPORT,
};

enum supervisor_report {
    SUPERVISOR_REPORT_PREPARED,
    SUPERVISOR_REPORT_UNPREPARED, // `message`: MASTER_ADDR did not resolve in time, or `port` is in use. The attempt
                                  // may be prepared again
    SUPERVISOR_REPORT_STARTED,    // all processes of the attempt run
    SUPERVISOR_REPORT_EXITED,     // one process
    SUPERVISOR_REPORT_STOPPED,    // nothing of the attempt is left
};

struct supervisor_action {
    enum supervisor_action_type type;
    enum supervisor_report report;
    int attempt;                              // REPORT: the attempt that it is about
    int rank, code, signal;                   // SUPERVISOR_REPORT_EXITED; rank: LAUNCH, TERMINATE and KILL too
    const struct supervisor_process *process; // LAUNCH; valid until the next command
    int64_t grace_ms;                         // TERMINATE
    const char *host;                         // RESOLVE; valid until the next command
    int port;          // TRY_PORT: the port; UNPREPARED: the port that is in use, 0 = there is another reason
    char message[384]; // UNPREPARED
};

struct supervisor *supervisor_new(const char *group);
void supervisor_free(struct supervisor *s);

// Inputs. Each may add actions. Take the actions before the next command. `now_ms` never goes back. ERR_CONFLICT: the
// command is of an older attempt, or is not possible now. The supervisor takes a reference if it needs the command
// later.
int supervisor_command(struct supervisor *s, int64_t now_ms, struct command *c, struct err *err);
// The answer to SUPERVISOR_RESOLVE. `matches`: one of the addresses is the one of PREPARE. `found` says in words what
// was found.
void supervisor_resolved(struct supervisor *s, int64_t now_ms, bool matches, const char *found);
// The answer to SUPERVISOR_TRY_PORT. `why_not`: why the port cannot be used; NULL = it can.
void supervisor_port_tried(struct supervisor *s, const char *why_not);
void supervisor_started(struct supervisor *s, int rank);
void supervisor_exited(struct supervisor *s, int rank, int code, int signal);
void supervisor_gone(struct supervisor *s, int64_t now_ms, int rank);
void supervisor_tick(struct supervisor *s, int64_t now_ms); // call this at supervisor_deadline_ms() or later
// The pod ends. Stops everything. From now on only commands that kill a process are accepted.
void supervisor_shutdown(struct supervisor *s, int64_t now_ms, int64_t grace_ms);

// Returns the oldest action that was not taken yet. false = there is none.
bool supervisor_next(struct supervisor *s, struct supervisor_action *ret);

int64_t supervisor_deadline_ms(const struct supervisor *s); // INT64_MAX = nothing to wait for
enum supervisor_state supervisor_state(const struct supervisor *s);
const char *supervisor_state_name(enum supervisor_state state); // "Preparing"
const char *supervisor_group(const struct supervisor *s);
int supervisor_attempt(const struct supervisor *s);
const char *supervisor_master_ip(const struct supervisor *s); // in the current PREPARE, NULL = none
size_t supervisor_process_count(const struct supervisor *s);
const struct supervisor_process *supervisor_process_at(const struct supervisor *s, size_t i);
