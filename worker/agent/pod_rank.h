// SPDX-License-Identifier: Apache-2.0
// One rank in a pod: its processes, one after the other, and what is known about the last one. A process
// is forked from the group's template if the template can fork. Otherwise it is started without a template.
#pragma once

#include "worker/agent/oom.h"
#include "worker/agent/rank_process.h"
#include "worker/agent/template.h"

struct pod_rank;

struct pod_rank_config {
    struct loop *loop;
    struct child_reaper *reaper;
    struct rank_output *output;
    struct oom *oom; // shared by all ranks
    int rank;
    // Called from the loop only. `exit` comes with PROCESS_EXITED. After PROCESS_GONE, the rank may be started again.
    void (*happened)(void *ctx, struct pod_rank *p, enum process_event event, const struct process_exit *exit);
    // The process has printed a line. NULL = nobody listens.
    void (*printed)(void *ctx, int rank, const char *text, size_t len);
    void *ctx;
};

struct pod_rank_run {
    const char *const *argv, *const *env; // NULL-terminated
    const char *dir;                      // NULL = the directory of the agent
    struct template *template;            // NULL = start it without a template
};

// Facts about the last process.
struct pod_rank_news {
    const char *error; // why the command could not be run; else ""
    const char *slow;  // why the process was not forked from the template; else ""
    bool oom;          // the kernel killed it because the memory was used up
    const char *last;  // what it printed last
    size_t last_len;
};

struct pod_rank *pod_rank_new(const struct pod_rank_config *c);
void pod_rank_free(struct pod_rank *p); // kills what still runs
int pod_rank_number(const struct pod_rank *p);

// `who`: the name before each line that the process prints. An error is reported as the exit of a process that could
// not be run.
void pod_rank_start(struct pod_rank *p, const char *who, const struct pod_rank_run *run);
void pod_rank_fail(struct pod_rank *p, const char *who, const char *why); // instead of pod_rank_start()
void pod_rank_stop(struct pod_rank *p, int64_t grace_ms);                 // does nothing if no process runs
void pod_rank_kill(struct pod_rank *p);                                   // kills the process because a client wants it
void pod_rank_news(const struct pod_rank *p, struct pod_rank_news *ret);
