// SPDX-License-Identifier: Apache-2.0
// One worker process. It has an environment of its own, and is the leader of a new session. It is watched, and stopped
// with SIGTERM and SIGKILL. It inherits only what is named here.
//
// Exit codes are like the ones of the shell: the code of the process; 128 + N if signal N ended it; 127 if the command
// does not exist; 126 if it exists but cannot be run.
#pragma once

#include "worker/agent/child_reaper.h"

#include <stdbool.h>
#include <stdint.h>

enum { PROCESS_EXIT_NOT_RUNNABLE = 126, PROCESS_EXIT_NOT_FOUND = 127, PROCESS_EXIT_SIGNAL = 128 };

struct process;

enum process_event {
    PROCESS_STARTED, // the command runs
    PROCESS_EXITED,  // process_exit() tells how. It may come instead of PROCESS_STARTED: then process_error() tells why
    PROCESS_GONE,    // nothing of its process group is left; the last event
};

// The callee may free the process on PROCESS_GONE, not before. It is never called inside process_start() or
// process_stop().
typedef void (*process_fn)(void *ctx, enum process_event event);

struct process_config {
    struct loop *loop;
    struct child_reaper *reaper;
    const char *const *argv; // NULL-terminated; an argv[0] without '/' is searched in PATH of `env`
    const char *const *env;  // "NAME=value", NULL-terminated
    const char *dir;         // NULL = the directory of the agent
    int in;                  // becomes its standard input; 0 = /dev/null. The caller keeps these three descriptors
    int out, err;            // become its standard output and error
    process_fn fn;
    void *ctx;
};

struct process_exit {
    int code;   // see above
    int signal; // 0 = it exited by itself
    bool core;  // it dumped core
    bool ours;  // the agent had sent it SIGKILL
};

// Forks the process. Returns NULL only if fork() fails. An event tells later whether the command could be run. The
// strings of the config are not used after this call.
struct process *process_start(const struct process_config *c, struct err *err);
// Does the same with a child that was forked from a template (template.h) and leads a session of its own. The child
// waits on this socket until it may become the process. The process owns the socket from now on. Only argv[0] and dir
// of the config are used, for messages. ERR_UNAVAILABLE: the child has died.
struct process *process_adopt(const struct process_config *c, int pid, int fd, struct err *err);
// Asks the whole process group to end, and kills it after the grace time (0 = at once). Another call may shorten the
// time. Without this call, the rest of the group is killed as soon as its leader has exited.
void process_stop(struct process *p, int64_t grace_ms);
int process_pid(const struct process *p);
struct process_exit process_exit(const struct process *p);
const char *process_error(const struct process *p); // "" = the command was run
void process_free(struct process *p);               // kills what still runs; accepts NULL
