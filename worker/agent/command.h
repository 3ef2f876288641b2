// SPDX-License-Identifier: Apache-2.0
// Commands to an agent about one group in its pod: the bodies of docs/protocol.md ("Agents"), decoded and checked.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/wire/record.h"
#include "worker/agent/environment.h"

#include <stdbool.h>
#include <stdint.h>

enum { COMMAND_PROCESSES_MAX = 1024, COMMAND_VARS_MAX = 4096, COMMAND_ARGS_MAX = 4096 };

struct command {
    // RECORD_PREPARE: get ready to start: nothing of an older attempt runs, MASTER_ADDR resolves to the pod of rank 0.
    // RECORD_START: start all processes of a prepared attempt. RECORD_RESTART: start some processes of a running
    // attempt again. RECORD_STOP: stop all. RECORD_KILL: end one process at once, as if it had crashed.
    enum record_type type;
    const char *group; // UID
    int attempt;       // KILL: the attempt of the process, 0 = any
    int rank;          // KILL
    int64_t grace_ms;  // PREPARE, RESTART, STOP: between SIGTERM and SIGKILL
    bool end;          // STOP: the pod ends, too
    // PREPARE
    const char *master_addr, *master_ip; // NULL = need not be resolved
    int64_t timeout_ms;                  // how long it may take to resolve
    int master_port; // the port on which rank 0 will listen in this pod; 0 = it runs elsewhere, or the port is not
                     // tested
    // START, RESTART
    struct environment_group env;
    const char *const *argv; // NULL = the command of the pod
    const char *dir;         // NULL = the directory of the pod
    struct environment_process *processes;
    size_t n_processes;
    // private
    unsigned refs;
    struct arena arena; // contains everything
};

bool command_is(unsigned record_type);                                              // this record is a command
struct command *command_new(enum record_type type, const char *group, int attempt); // all other members are zero
// Copies what it keeps of the text. The message of ERR_INVALID names the wrong member.
int command_parse(enum record_type type, const char *json, size_t len, struct command **ret, struct err *err);
struct command *command_ref(struct command *c);
void command_unref(struct command *c); // accepts NULL
