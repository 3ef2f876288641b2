// SPDX-License-Identifier: Apache-2.0
// The place of one rank in a pod: its processes, one after the other, and what is known about the last one. A process
// is forked from the group's template if the template can fork. Otherwise it is started without a template.
#pragma once

#include "worker/agent/rank_process.h"
#include "worker/agent/template.h"

struct rank_place;

struct rank_place_config {
    struct loop *loop;
    struct child_reaper *reaper;
    struct rank_output *output;
    int64_t *oom_kills; // how many OOM kills of the kernel are known; all places share the number
    int rank;
    // Called from the loop only. `exit` comes with PROCESS_EXITED. After PROCESS_GONE, the place may be started again.
    void (*happened)(void *ctx, struct rank_place *p, enum process_event event, const struct process_exit *exit);
    // The process has printed a line. NULL = nobody listens.
    void (*printed)(void *ctx, int rank, const char *text, size_t len);
    void *ctx;
};

struct rank_place_run {
    const char *const *argv, *const *env; // NULL-terminated
    const char *dir;                      // NULL = the directory of the agent
    struct template *template;            // NULL = start it without a template
};

// Facts about the last process.
struct rank_place_news {
    const char *error; // why the command could not be run; else ""
    const char *slow;  // why the process was not forked from the template; else ""
    bool oom;          // the kernel killed it because the memory was used up
    const char *last;  // what it printed last
    size_t last_len;
};

struct rank_place *rank_place_new(const struct rank_place_config *c);
void rank_place_free(struct rank_place *p); // kills what still runs
int rank_place_rank(const struct rank_place *p);

// `who`: the name before each line that the process prints. An error is reported as the exit of a process that could
// not be run.
void rank_place_start(struct rank_place *p, const char *who, const struct rank_place_run *run);
void rank_place_fail(struct rank_place *p, const char *who, const char *why); // instead of rank_place_start()
void rank_place_stop(struct rank_place *p, int64_t grace_ms);                 // does nothing if no process runs
void rank_place_kill(struct rank_place *p); // kills the process because a client wants it
void rank_place_news(const struct rank_place *p, struct rank_place_news *ret);
