// SPDX-License-Identifier: Apache-2.0
// The duty of pid 1: every child that dies is reaped, whether we started it or inherited it. One a process, because
// SIGCHLD and wait() are the process's. Elsewhere than at pid 1 it makes the process a subreaper, so that orphans of
// what we started come to us there as well.
#pragma once

#include "common/base/loop.h"

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

// Sends SIGKILL to every child of ours that nobody watches: what is left of processes that left their group. With
// `mark` ("NAME=value") only to those that were started with it in their environment. Returns how many there were;
// their own children come to us, and take another call.
int reaper_kill_orphans(struct reaper *r, const char *mark);
