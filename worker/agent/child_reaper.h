// SPDX-License-Identifier: Apache-2.0
// Does the duty of pid 1: reaps every child that dies, whether this process started or inherited it. There is one
// reaper per process, because SIGCHLD and wait() belong to the process. If the process is not pid 1, it becomes a
// subreaper, so it inherits the orphans of its children, too.
#pragma once

#include "common/base/loop.h"

#include <stdbool.h>
#include <sys/types.h>

struct child_reaper;
struct child_reaper_watch;

// `status` is the one of waitpid().
typedef void (*child_reaper_fn)(void *ctx, int status);

struct child_reaper *child_reaper_new(struct loop *loop);
void child_reaper_free(struct child_reaper *r); // every watch must have been removed

// Calls fn once, when that child has been reaped. The watch is removed before. Call this in the callback that forked
// the child: later, it may be reaped already. With pid 0, calls fn with status 0 each time a child has been reaped that
// nobody watches.
struct child_reaper_watch *child_reaper_watch(struct child_reaper *r, pid_t pid, child_reaper_fn fn, void *ctx);
void child_reaper_unwatch(struct child_reaper_watch *w); // accepts NULL

bool child_reaper_is_child(pid_t pid); // it is a child of this process, and alive

// Sends SIGKILL to every child that nobody watches: such children have left their process group. With `mark`
// ("NAME=value"), it kills only those that were started with this variable in their environment. Returns how many it
// killed. Their own children become children of this process, and need another call.
int child_reaper_kill_orphans(struct child_reaper *r, const char *mark);
