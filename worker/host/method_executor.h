// SPDX-License-Identifier: Apache-2.0
// Runs jobs beside the loop, for user code that may block. Each lane has its own threads and begins its jobs in order.
// The first lane, lane 0, has one thread. A finished job comes back to the loop's thread. Only the loop's thread calls
// these functions, unless they say otherwise.
//
// To hand a job over and back wakes two threads. This takes longer than most methods do. So within
// method_executor_turn(), the loop is lent to the thread of lane 0 while its jobs are brief: that thread reads a call,
// runs it and writes the answer itself. This takes 0.65x of the time for single calls over TLS, and answers 1.4x as
// many calls a second with 1,000 in flight (bench/calls). "The loop's thread" is the thread that turns the loop. It
// changes only between callbacks, under a mutex.
//
// An executor that is pulled has no threads of its own. Threads of the program take the jobs with
// method_executor_pull(), and the one that pulls lane 0 is its thread. Everything else is the same.
#pragma once

#include "common/base/list.h"
#include "common/base/loop.h"

enum { EXECUTOR_LANES_MAX = 17, EXECUTOR_THREADS_MAX = 64 };

struct method_executor;

// Embedded in what its owner wants to run. The owner keeps it until `done` was called, or the job was withdrawn.
struct executor_job {
    void (*run)(struct executor_job *job);  // on the executor's thread
    void (*done)(struct executor_job *job); // on the loop's thread, from the loop; may free the job
    unsigned lane;
    bool pulled; // method_executor_pull() returns it, and method_executor_finish() says when it was run; `run` may be
                 // NULL
    bool alone;  // runs in lane 0 when nothing else runs; submit nothing after it
    // private
    struct list link;
    bool waits;
};

// `max`: how many jobs may wait. `pulled`: see above. An executor keeps the loop alive.
struct method_executor *method_executor_new(struct loop *loop, size_t max, bool pulled);
unsigned method_executor_add_lane(struct method_executor *e, unsigned n_threads);   // returns its number
unsigned method_executor_lane_size(const struct method_executor *e, unsigned lane); // how many threads it has
// Waits until the running jobs have returned and no thread pulls jobs. Calls `done` for the jobs that have run. No job
// may be waiting.
void method_executor_free(struct method_executor *e); // accepts NULL

// Turns the loop, like loop_run(), until a callback calls method_executor_leave().
void method_executor_turn(struct method_executor *e);
void method_executor_leave(struct method_executor *e);
// Call this in a job that is about to wait for something. Another thread then turns the loop.
void method_executor_waits(void);

// ERR_LIMIT: too many jobs wait.
int method_executor_submit(struct method_executor *e, struct executor_job *job, struct err *err);
// Returns true if the job had not begun: it will not run, and `done` is not called. Returns false if it is too late:
// `done` will be called.
bool method_executor_withdraw(struct method_executor *e, struct executor_job *job);

// These are for any thread of the program, if the executor is pulled.

enum executor_pulled { EXECUTOR_JOB, EXECUTOR_NONE, EXECUTOR_STOPPED };

// Returns the next job of the lane that is to be pulled; it runs the others itself. EXECUTOR_NONE: there is none, and
// `wait` is false or method_executor_wake() was called. EXECUTOR_STOPPED: there will be none. Only one thread may pull
// lane 0.
enum executor_pulled method_executor_pull(struct method_executor *e, unsigned lane, bool wait,
                                          struct executor_job **ret);
// The job was run. Call it once for each job, on any thread.
void method_executor_finish(struct method_executor *e, struct executor_job *job);
void method_executor_wake(struct method_executor *e); // wakes the thread that pulls lane 0
// Returns an eventfd that is written when a job comes; -1 = see errno.
int method_executor_lane_fd(struct method_executor *e, unsigned lane);
void method_executor_stop(struct method_executor *e); // no further job comes
