// SPDX-License-Identifier: Apache-2.0
// The template of a group's processes in a pod: a process that has imported what spec.worker.preload names. It forks
// each rank, so a restart does not wait for an import. docs/protocol.md ("Template") describes the messages.
//
// A template is the command of the ranks, started with CADRE_TEMPLATE=1 in its environment and a socket as standard
// input. It says when it is ready, or why it never will be. It forks twice: the rank becomes a child of the agent,
// because the agent is the subreaper of all that it starts.
#pragma once

#include "worker/agent/child_reaper.h"
#include "worker/agent/oom.h"
#include "worker/agent/rank_output.h"

struct template;

// A template that the nursery has forked together with this agent (nursery.h). It waits to be adopted.
struct template_preforked {
    int pid;            // 0 = none
    int start, control; // the socket for process_adopt(), and the one on which ranks are requested
};

struct fork_request; // a request for a rank

struct template_config {
    struct loop *loop;
    struct child_reaper *reaper;
    struct rank_output *output;
    struct oom *oom;                      // shared with pod_rank
    int64_t import_ms;                    // the limit for its imports
    struct template_preforked *preforked; // the first template adopts it; shared; NULL = none
    int64_t idle_ms;                      // without a rank for this time, the template ends, to free its memory
};

// The program that runs as the template. The strings are copied. The lists are NULL-terminated.
struct template_source {
    const char *who; // the name before each line that it prints
    const char *const *argv;
    const char *const *env;
    const char *dir; // NULL = the directory of the agent
};

// The rank is a child of the agent, with this pid. It waits on the socket `fd` for process_adopt(); the callee closes
// the socket. pid 0: there is no rank, and why_not says why. Called once, from the loop.
typedef void (*fork_fn)(void *ctx, int pid, int fd, const char *why_not);

struct fork_config {
    const char *const *env; // of the rank
    const char *dir;        // NULL = the directory of the agent
    int out, err;           // the caller keeps them
    fork_fn fn;
    void *ctx;
};

// Reads the preforked template from the environment of the agent, and removes it there.
struct template_preforked template_preforked_take(void);
struct template *template_new(const struct template_config *c);
void template_free(struct template *t); // kills it; no request may be open. Accepts NULL

// Makes sure that a template of that source runs. Starts one if the last one has died, or has another source. A
// template that could not import is not tried again. If there is a preforked one, it is the first template.
void template_want(struct template *t, const struct template_source *s);
// Requests a rank. Keeps no string of the config. NULL: there are no more descriptors.
struct fork_request *template_fork(struct template *t, const struct fork_config *c, struct err *err);
void fork_request_cancel(struct fork_request *b); // fn is not called; accepts NULL
void template_rest(struct template *t); // no rank is left: the template ends after idle_ms if no rank is requested
