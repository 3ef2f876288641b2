// SPDX-License-Identifier: Apache-2.0
// One worker process: started with an environment of its own as the leader of a new session, watched, stopped with
// SIGTERM and SIGKILL. Nothing is inherited but what is named here.
//
// Exit codes are the shell's: the process's own; 128 + N if signal N ended it; 127 if the command is not there, 126 if
// it is but cannot be run.
#pragma once

#include "worker/agent/child_reaper.h"

#include <stdbool.h>
#include <stdint.h>

enum { PROCESS_EXIT_NOT_RUNNABLE = 126, PROCESS_EXIT_NOT_FOUND = 127, PROCESS_EXIT_SIGNAL = 128 };

struct process;

enum process_event {
    PROCESS_STARTED, // the command runs
    PROCESS_EXITED,  // process_exit() tells how; also instead of PROCESS_STARTED, where process_error() says why
    PROCESS_GONE,    // nothing of its group is left; the last event
};

// May free the process on PROCESS_GONE, not before. Never called inside process_start() or process_stop().
typedef void (*process_fn)(void *ctx, enum process_event event);

struct process_config {
    struct loop *loop;
    struct reaper *reaper;
    const char *const *argv; // NULL-terminated; argv[0] without '/' is looked for in PATH of `env`
    const char *const *env;  // "NAME=value", NULL-terminated
    const char *dir;         // NULL = ours
    int in;                  // becomes its standard input; 0 = /dev/null. These three stay the caller's
    int out, err;            // become its standard output and error
    process_fn fn;
    void *ctx;
};

struct process_exit {
    int code;   // see above
    int signal; // 0 = it exited by itself
    bool core;  // a core was dumped
};

// Forks, and returns NULL only where that fails; whether the command could be run comes as an event. The config's
// strings are not used afterwards.
struct process *process_start(const struct process_config *c, struct err *err);
// The same of a child that was forked from a template (template.h) and leads a session of its own: it has waited on
// this socket for the word to become the process. The socket is the process's from now on. Of the config, argv[0] and
// dir are used for messages. ERR_UNAVAILABLE: it has died.
struct process *process_adopt(const struct process_config *c, int pid, int fd, struct err *err);
// Asks the whole group to end, and kills it after the grace time (0 = at once). May be called again to shorten it.
// Without it, what is left of the group is killed as soon as its leader has exited.
void process_stop(struct process *p, int64_t grace_ms);
int process_pid(const struct process *p);
struct process_exit process_exit(const struct process *p);
const char *process_error(const struct process *p); // "" = the command was run
void process_free(struct process *p);               // kills what still runs; accepts NULL
