// SPDX-License-Identifier: Apache-2.0
// The duty of pid 1: reaps every child that dies, whether we started it or inherited it. There is one per process,
// because SIGCHLD and wait() belong to the process. If the process is not pid 1, it becomes a subreaper, so that
// orphans of its children come to it, too.
#pragma once

#include "common/base/loop.h"

#include <stdbool.h>
#include <sys/types.h>

struct reaper;
struct reaper_watch;

// `status` comes from waitpid().
typedef void (*reaper_fn)(void *ctx, int status);

struct reaper *reaper_new(struct loop *loop);
void reaper_free(struct reaper *r); // every watch must have been removed

// Calls fn once, when that child has been reaped; the watch is gone then. Watch a child in the same callback in which
// it was forked, else it may be reaped before.
struct reaper_watch *reaper_watch_child(struct reaper *r, pid_t pid, reaper_fn fn, void *ctx);
// Calls fn (with status 0) whenever any other child has been reaped.
struct reaper_watch *reaper_watch_orphans(struct reaper *r, reaper_fn fn, void *ctx);
void reaper_unwatch(struct reaper_watch *w); // accepts NULL

bool reaper_is_child(pid_t pid); // of ours, and alive

// Sends SIGKILL to every child of ours that nobody watches: what is left of processes that left their group. With
// `mark` ("NAME=value") only to those that were started with it in their environment. Returns how many there were;
// their own children come to us, and take another call.
int reaper_kill_orphans(struct reaper *r, const char *mark);
