// SPDX-License-Identifier: Apache-2.0
// The template of a group's processes in a pod: a process that has imported what spec.worker.preload names, and is
// forked for each rank, so that a restart waits for no import. docs/protocol.md ("Template") has what both sides say.
//
// The command of the ranks, with CADRE_TEMPLATE=1 in its environment and a socket as standard input, makes a template.
// It does so itself, and says when it is ready, or why it never will be. It forks twice: the rank becomes a child of
// ours, because we are the subreaper of all that we start.
#pragma once

#include "worker/agent/child_reaper.h"
#include "worker/agent/rank_output.h"

struct template;

// A template that the nursery has forked together with this agent (nursery.h). It waits to be adopted.
struct template_seed {
    int pid;            // 0 = there is none
    int birth, control; // the socket for process_adopt(), and the one that asks for ranks
};

struct birth; // a request for a process

struct template_config {
    struct loop *loop;
    struct reaper *reaper;
    struct output *output;
    int64_t *oom_kills;         // how many OOM kills of the kernel are known; shared with rank_place
    int64_t import_ms;          // for its imports
    struct template_seed *seed; // the first template adopts it; shared; NULL = there is none
    int64_t idle_ms;            // the template ends after this time without a rank, to free its memory
};

// What runs as the template; the strings are copied. NULL-terminated lists.
struct template_source {
    const char *who; // in front of what it prints
    const char *const *argv;
    const char *const *env;
    const char *dir; // NULL = ours
};

// The rank is a child of ours: pid, and the socket on which it waits for process_adopt(), the callee's to close. pid 0:
// there is none, why_not says why. Called once, from the loop.
typedef void (*birth_fn)(void *ctx, int pid, int fd, const char *why_not);

struct birth_config {
    const char *const *env; // of the rank
    const char *dir;        // NULL = ours
    int out, err;           // stay the caller's
    birth_fn fn;
    void *ctx;
};

// From our environment, which it is taken out of.
struct template_seed template_seed_take(void);
struct template *template_new(const struct template_config *c);
void template_free(struct template *t); // kills it; every birth must be over. Accepts NULL

// Makes sure that a process of that source runs: it is started, also where the last one has died, and replaces one of
// another source. One that could not import is not tried again. The seed, where there is one, is the first.
void template_want(struct template *t, const struct template_source *s);
// Asks for a rank; nothing is kept of the config's strings. NULL: there are no more descriptors.
struct birth *template_fork(struct template *t, const struct birth_config *c, struct err *err);
void birth_cancel(struct birth *b);         // fn is not called; accepts NULL
void template_rest(struct template *t);     // no rank is left: it ends after idle_ms, if none is asked for
int template_pid(const struct template *t); // 0 = it does not run
