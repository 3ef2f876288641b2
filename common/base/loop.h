// SPDX-License-Identifier: Apache-2.0
// The event loop: a thin layer over libuv, one per process, one thread. Nothing below it does I/O of its own, so a test
// can run any part by turning the loop. Callbacks never run inside the call that arms them.
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_timer;
struct loop_poll;
struct loop_signal;
struct loop_wakeup;
struct loop_hook;

enum loop_events { LOOP_READ = 1, LOOP_WRITE = 2 };

typedef void (*loop_fn)(void *ctx);
typedef void (*loop_poll_fn)(void *ctx, int events); // events: LOOP_READ | LOOP_WRITE; both after a poll error
typedef void (*loop_signal_fn)(void *ctx, int signo);

struct loop *loop_new(void);
// Every timer, poll and signal must have been freed before; runs the loop until libuv has let go of them.
void loop_free(struct loop *loop);
void *loop_uv(struct loop *loop); // the uv_loop_t, for libraries that bring a libuv binding of their own

// Runs until loop_stop(), or until nothing is left that could ever call back.
void loop_run(struct loop *loop);
bool loop_run_once(struct loop *loop, int64_t timeout_ms); // one turn, waits at most this long; false = nothing alive
void loop_stop(struct loop *loop);
// From now on the loop looks for events for some microseconds before it sleeps, while that pays (spin.h). With one CPU,
// on the machine or in the control group, it never does. Not for a loop inside another one.
void loop_spin(struct loop *loop);
// For a loop inside another one. loop_fd() is a descriptor that is readable when loop_run_once(loop, 0) has something
// to do. loop_timeout_ms() is the longest time until then, -1 = no limit. Call it only between turns, and again after
// each turn.
int loop_fd(const struct loop *loop);
int loop_timeout_ms(struct loop *loop);
// From now on calls fn with how long each turn worked: from the end of one wait to the beginning of the next. Looking
// before a sleep does not count as work. NULL: nobody asks any more.
void loop_observe(struct loop *loop, void (*fn)(void *ctx, int64_t worked_us), void *ctx);
// A clock that reads the loop's cached time for `mono`: cheap, and equal within one turn.
const struct clock *loop_clock(struct loop *loop);

// The time of loop_clock().
static inline int64_t loop_now_ms(struct loop *loop)
{
    return clock_mono_ms(loop_clock(loop));
}
static inline int64_t loop_wall_ms(struct loop *loop)
{
    return clock_wall_ms(loop_clock(loop));
}

// Calls fn once, on the next turn; order is kept. The context must live until then. Only from the loop's thread.
void loop_defer(struct loop *loop, loop_fn fn, void *ctx);

// A one-shot timer; 0 ms = on the next turn, like loop_defer(). Arming again replaces the earlier deadline. `free`
// accepts NULL and may be called in its callback.
struct loop_timer *loop_timer_new(struct loop *loop, loop_fn fn, void *ctx);
void loop_timer_arm(struct loop_timer *t, int64_t ms);
void loop_timer_disarm(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);
void loop_timer_free(struct loop_timer *t);

// Readiness of a file descriptor, which stays the caller's: free the poll before closing the descriptor.
struct loop_poll *loop_poll_new(struct loop *loop, int fd, loop_poll_fn fn, void *ctx);
// The same, which watches for LOOP_READ. NULL and an error: it cannot be watched.
struct loop_poll *loop_poll_read(struct loop *loop, int fd, loop_poll_fn fn, void *ctx, struct err *err);
int loop_poll_set(struct loop_poll *p, int events, struct err *err); // 0 = paused
void loop_poll_free(struct loop_poll *p);
void loop_close_polled(void); // in a child of fork(): closes the descriptors that its parent watches

// Signals do not keep the loop alive.
struct loop_signal *loop_signal_new(struct loop *loop, int signo, loop_signal_fn fn, void *ctx);
void loop_signal_free(struct loop_signal *s);

// Calls fn on the loop's thread, soon after loop_wakeup_signal(), which any thread may call; signals that come close
// together become one call. It keeps the loop alive. Only the loop's thread makes and frees it, and no thread may
// signal after that.
struct loop_wakeup *loop_wakeup_new(struct loop *loop, loop_fn fn, void *ctx);
void loop_wakeup_signal(struct loop_wakeup *w);
void loop_wakeup_free(struct loop_wakeup *w);

// Calls fn each time before the loop waits for events, the newest hook first. Does not keep the loop alive.
struct loop_hook *loop_hook_new(struct loop *loop, loop_fn fn, void *ctx);
void loop_hook_free(struct loop_hook *h);

// A shortcut for code that watches its own descriptors. While loop_run() looks before it sleeps (loop_spin()), it calls
// `look`. This function deals with the events that have come, does not wait, and returns whether there were any. The
// hooks run after it. Events that it misses, and all other events, come through libuv as usual.
typedef bool (*loop_look_fn)(void *ctx);
void loop_hook_look(struct loop_hook *h, loop_look_fn fn);
