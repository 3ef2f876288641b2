// SPDX-License-Identifier: Apache-2.0
// The place of one rank in a pod: its processes, one after the other, and what is known of the last one. A process is
// forked from the group's template, where there is one that can, or else started by itself.
#pragma once

#include "worker/agent/rank_process.h"
#include "worker/agent/template.h"

struct place;

struct place_config {
    struct loop *loop;
    struct reaper *reaper;
    struct output *output;
    int64_t *oom_kills; // by the kernel, that are known; shared by all places
    int rank;
    // From the loop only. `exit` as of PROCESS_EXITED. The place may be started again on PROCESS_GONE.
    void (*happened)(void *ctx, struct place *p, enum process_event event, const struct process_exit *exit);
    // It has printed a line; NULL = nobody wants to know.
    void (*printed)(void *ctx, int rank, const char *text, size_t len);
    void *ctx;
};

struct place_run {
    const char *const *argv, *const *env; // NULL-terminated
    const char *dir;                      // NULL = ours
    struct template *template;            // NULL = it is started by itself
};

// What is known of its last process.
struct place_news {
    const char *error; // why the command could not be run; ""
    const char *slow;  // why it was not forked from the template; ""
    bool oom;          // the kernel killed it for its memory
    const char *last;  // what it printed last
    size_t last_len;
};

struct place *place_new(const struct place_config *c);
void place_free(struct place *p); // kills what still runs
int place_rank(const struct place *p);

// `who`: in front of what it prints. What goes wrong is told as the exit of a process that could not be run.
void place_start(struct place *p, const char *who, const struct place_run *run);
void place_fail(struct place *p, const char *who, const char *why); // in place of place_start()
void place_stop(struct place *p, int64_t grace_ms);                 // nothing where no process runs
void place_kill(struct place *p);                                   // for a client
void place_news(const struct place *p, struct place_news *ret);
