// SPDX-License-Identifier: Apache-2.0
// Runs jobs beside the loop: where user code may block. Each lane has its own threads and begins its jobs in order; the
// first one, lane 0, has one thread. What was run comes back to the loop's thread. Only the loop's thread calls these
// functions, unless they say otherwise.
//
// To hand a job over and back wakes two threads, which takes longer than most methods do. So within executor_turn() the
// loop is lent to the thread of lane 0 while its jobs are brief: it reads a call, runs it and writes the answer itself.
// Gain: a call at a time over TLS takes 0.65x of the time, and 1,000 in flight are 1.4x as many a second (bench/calls).
// "The loop's thread" is the thread that turns the loop; it changes between callbacks only, under a mutex.
//
// An executor that is pulled has no threads: those of the program take the jobs, with executor_pull(), and the one that
// pulls lane 0 is its thread. All else is the same.
#pragma once

#include "common/base/list.h"
#include "common/base/loop.h"

enum { EXECUTOR_LANES_MAX = 17, EXECUTOR_THREADS_MAX = 64 };

struct executor;

// Embedded in what its owner wants to run; the owner keeps it until `done`, or until it was withdrawn.
struct executor_job {
    void (*run)(struct executor_job *job);  // on the executor's thread
    void (*done)(struct executor_job *job); // on the loop's thread, from the loop; may free the job
    unsigned lane;
    bool pulled; // it is handed to who pulls its lane, who says when it was run; `run` may be NULL
    bool alone;  // in lane 0, when nothing else runs; nothing may be submitted behind it
    // private
    struct list link;
    bool waits;
};

// `max`: jobs that may wait. An executor keeps the loop alive.
struct executor *executor_new(struct loop *loop, size_t max);
struct executor *executor_new_pulled(struct loop *loop, size_t max);
unsigned executor_add_lane(struct executor *e, unsigned n_threads);   // its number
unsigned executor_lane_size(const struct executor *e, unsigned lane); // its threads
// Waits until the running jobs have returned and no thread pulls jobs, and calls `done` for the jobs that have run. No
// job may be waiting.
void executor_free(struct executor *e); // accepts NULL

// Turns the loop, in place of loop_run(), until executor_leave() was called in a callback of it.
void executor_turn(struct executor *e);
void executor_leave(struct executor *e);
// Call it in a job that is about to wait for something. Another thread then turns the loop.
void executor_waits(void);

int executor_submit(struct executor *e, struct executor_job *job, struct err *err); // ERR_LIMIT: too many wait
// True: the job had not begun, and will neither run nor be done. False: too late, `done` will come.
bool executor_withdraw(struct executor *e, struct executor_job *job);

// From any thread of the program, if the executor is pulled

enum executor_pulled { EXECUTOR_JOB, EXECUTOR_NONE, EXECUTOR_STOPPED };

// The next job of the lane that is pulled; others are run inside. EXECUTOR_NONE: there is none, and `wait` is false, or
// somebody said executor_wake(). EXECUTOR_STOPPED: there will be none. One thread alone pulls lane 0.
enum executor_pulled executor_pull(struct executor *e, unsigned lane, bool wait, struct executor_job **ret);
void executor_finish(struct executor *e, struct executor_job *job); // it was run; from any thread, once a job
void executor_wake(struct executor *e);                             // who pulls lane 0
int executor_lane_fd(struct executor *e, unsigned lane); // an eventfd that is written to when a job comes; -1 = errno
void executor_stop(struct executor *e);                  // no job comes any more
