// SPDX-License-Identifier: Apache-2.0
#include "common/base/loop.h"

#include "common/base/cpus.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/spin.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#define LOOKS_US 500 // looks may deal with events alone for this long, then libuv polls

struct loop {
    uv_loop_t uv;
    struct clock clock;
    uv_idle_t deferred_idle; // runs only while something is deferred, so an idle loop sleeps
    uv_timer_t bound;        // limits loop_run_once
    uv_prepare_t before_wait;
    bool spins;
    bool passes; // this turn does not wait
    bool stays;  // in loop_run(): nobody waits for the end of a turn
    struct list hooks;
    struct spin spin;
    int64_t slept_us; // when it last went to sleep without a look; 0 = it did not
    struct list deferred;
    void (*observe)(void *ctx, int64_t worked_us); // NULL = nobody asks
    void *observe_ctx;
    int64_t begun_us; // this turn, with the wait that it begins with ...
    uint64_t idle_ns; // ... and how long all waits took before it
};

struct deferred {
    struct list link;
    loop_fn fn;
    void *ctx;
    bool owned; // the list owns it: made by loop_defer(). Otherwise part of a timer that is due at once
};

struct loop_timer {
    uv_timer_t uv;
    struct deferred now;
};

struct loop_poll {
    uv_poll_t uv;
    int fd;
    loop_poll_fn fn;
    void *ctx;
};

struct loop_signal {
    uv_signal_t uv;
    loop_signal_fn fn;
    void *ctx;
};

struct loop_wakeup {
    uv_async_t uv;
    loop_fn fn;
    void *ctx;
};

struct loop_hook {
    struct list link;
    loop_fn fn;
    loop_look_fn look; // NULL = none
    void *ctx;
};

static int64_t loop_mono(const struct clock *c)
{
    return (int64_t)uv_now(&CONTAINER_OF(c, struct loop, clock)->uv);
}

static int64_t loop_wall(const struct clock *c)
{
    (void)c;
    return clock_wall_ms(&clock_system);
}

static void run_deferred(uv_idle_t *idle)
{
    struct loop *loop = idle->data;
    struct list batch = LIST_INIT(batch); // work that is deferred meanwhile waits for the next turn
    list_splice(&batch, &loop->deferred);
    for (struct list *l; (l = list_pop(&batch));) {
        struct deferred *d = CONTAINER_OF(l, struct deferred, link);
        loop_fn fn = d->fn;
        void *ctx = d->ctx;
        if (d->owned)
            free(d);
        fn(ctx);
    }
    if (list_empty(&loop->deferred))
        uv_idle_stop(&loop->deferred_idle);
}

// Observing

static void begin_turn(struct loop *loop, int64_t now_us)
{
    loop->begun_us = now_us;
    if (loop->observe)
        loop->idle_ns = uv_metrics_idle_time(&loop->uv);
}

static void end_turn(struct loop *loop, int64_t now_us)
{
    if (!loop->observe)
        return;
    int64_t idle_us = (int64_t)((uv_metrics_idle_time(&loop->uv) - loop->idle_ns) / 1000);
    loop->observe(loop->observe_ctx, MAX(now_us - loop->begun_us - idle_us, 0));
}

void loop_observe(struct loop *loop, void (*fn)(void *ctx, int64_t worked_us), void *ctx)
{
    loop->observe = fn;
    loop->observe_ctx = ctx;
    uv_loop_configure(&loop->uv, UV_METRICS_IDLE_TIME);
    begin_turn(loop, clock_mono_us(&clock_system));
}

// Spinning

// Whether a look has found something and dealt with it.
static bool look_within(struct loop *loop)
{
    bool any = false;
    uv_update_time(&loop->uv);
    LIST_FOREACH(l, &loop->hooks) {
        struct loop_hook *h = CONTAINER_OF(l, struct loop_hook, link);
        any = (h->look && h->look(h->ctx)) || any;
    }
    return any;
}

// Looks for events for up to SPIN_US. True: a look has dealt with some. False: libuv finds the event that is there, or
// sleeps. The events that a look deals with belong to the turn that begins then.
static bool look(struct loop *loop, int64_t begun_us, bool within)
{
    struct pollfd events = {.fd = uv_backend_fd(&loop->uv), .events = POLLIN};
    int64_t took_us = 0;
    bool dealt, found;
    do {
        loop->begun_us = begun_us + took_us;
        dealt = within && look_within(loop);
        found = dealt || poll(&events, 1, 0) > 0;
        if (!found)
            sched_yield(); // the process that has to answer may need this core
        took_us = clock_mono_us(&clock_system) - begun_us;
    } while (!found && took_us < SPIN_US);
    spin_looked(&loop->spin, took_us, found);
    return dealt;
}

static void note_sleep(struct loop *loop, int64_t now_us)
{
    if (loop->slept_us)
        spin_slept(&loop->spin, now_us - loop->slept_us);
    loop->slept_us = 0;
}

static void run_hooks(struct loop *loop)
{
    struct list batch = LIST_INIT(batch);
    list_splice(&batch, &loop->hooks);
    for (struct list *l; (l = list_pop(&batch));) {
        struct loop_hook *h = CONTAINER_OF(l, struct loop_hook, link);
        list_append(&loop->hooks, l);
        h->fn(h->ctx);
    }
}

// Spins, if that is wanted. Returns whether a look has dealt with something. *until_us: 0 the first time in a turn.
static bool look_or_sleep(struct loop *loop, int64_t now_us, int64_t *until_us)
{
    if (!loop->spins || loop->passes)
        return false;
    note_sleep(loop, now_us);
    if (uv_backend_timeout(&loop->uv) == 0) // also while the kernel does not know of all descriptors
        return false;
    if (!*until_us)
        *until_us = loop->stays ? now_us + LOOKS_US : now_us;
    if (spin_wanted(&loop->spin))
        return look(loop, now_us, now_us < *until_us);
    loop->slept_us = now_us;
    return false;
}

// When looks deal with events, no turn of libuv is needed. Each of its turns asks the kernel twice more.
static void on_before_wait(uv_prepare_t *uv)
{
    struct loop *loop = uv->data;
    int64_t until_us = 0, now_us;
    do {
        run_hooks(loop);
        now_us = clock_mono_us(&clock_system);
        end_turn(loop, now_us);
        begin_turn(loop, now_us);
    } while (look_or_sleep(loop, now_us, &until_us));
}

struct loop *loop_new(void)
{
    struct loop *loop = xcalloc(1, sizeof *loop);
    if (uv_loop_init(&loop->uv) != 0)
        abort(); // no epoll descriptor: nothing can run
    loop->clock = (struct clock){loop_mono, loop_wall, clock_system.mono_us};
    list_init(&loop->deferred);
    list_init(&loop->hooks);
    uv_idle_init(&loop->uv, &loop->deferred_idle);
    loop->deferred_idle.data = loop;
    uv_timer_init(&loop->uv, &loop->bound);
    uv_prepare_init(&loop->uv, &loop->before_wait);
    loop->before_wait.data = loop;
    uv_prepare_start(&loop->before_wait, on_before_wait); // the first one to start runs last, after libraries
    uv_unref((uv_handle_t *)&loop->before_wait);
    return loop;
}

static void refuse_alive(uv_handle_t *h, void *ctx)
{
    (void)ctx;
    if (uv_is_closing(h))
        return;
    fprintf(stderr, "cadre: the loop is freed before one of its users (uv_%s)\n",
            uv_handle_type_name(uv_handle_get_type(h)));
    abort(); // a bug that would turn into use after free
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    for (struct list *l; (l = list_pop(&loop->deferred));)
        free(CONTAINER_OF(l, struct deferred, link)); // all owned: timers are gone by now
    uv_close((uv_handle_t *)&loop->deferred_idle, NULL);
    uv_close((uv_handle_t *)&loop->bound, NULL);
    uv_close((uv_handle_t *)&loop->before_wait, NULL);
    uv_walk(&loop->uv, refuse_alive, NULL);
    if (!list_empty(&loop->hooks)) {
        fprintf(stderr, "cadre: the loop is freed before one of its users (a hook)\n");
        abort();
    }
    uv_run(&loop->uv, UV_RUN_NOWAIT); // clears the flag of a loop_stop() that came after the last run
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop->uv) != 0)
        abort();
    free(loop);
}

void *loop_uv(struct loop *loop)
{
    return &loop->uv;
}

void loop_run(struct loop *loop)
{
    loop->stays = true;
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop->stays = false;
}

static void bound_reached(uv_timer_t *t)
{
    (void)t; // its only purpose is to wake the loop
}

bool loop_run_once(struct loop *loop, int64_t timeout_ms)
{
    bool alive = uv_loop_alive(&loop->uv) != 0;
    if (timeout_ms <= 0) {
        loop->passes = true;
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        loop->passes = false;
        return alive;
    }
    uv_update_time(&loop->uv);
    // The timer repeats, because libuv runs due timers before it polls, too: a bound that fires there would not limit
    // the wait.
    uv_timer_start(&loop->bound, bound_reached, (uint64_t)timeout_ms, (uint64_t)timeout_ms);
    uv_run(&loop->uv, UV_RUN_ONCE);
    uv_timer_stop(&loop->bound);
    if (loop->slept_us) // the time until the caller's next call does not count as a wait
        note_sleep(loop, clock_mono_us(&clock_system));
    return alive;
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

void loop_spin(struct loop *loop)
{
    loop->spins = cpus_available() > 1;
}

int loop_fd(const struct loop *loop)
{
    return uv_backend_fd(&loop->uv);
}

int loop_timeout_ms(struct loop *loop)
{
    uv_update_time(&loop->uv); // otherwise the time would count from the last turn
    // libuv says 0 if nothing is left that could happen. A thread that turns the loop would never sleep again.
    return uv_loop_alive(&loop->uv) ? uv_backend_timeout(&loop->uv) : -1;
}

const struct clock *loop_clock(struct loop *loop)
{
    return &loop->clock;
}

static void defer(struct loop *loop, struct deferred *d)
{
    list_append(&loop->deferred, &d->link);
    uv_idle_start(&loop->deferred_idle, run_deferred);
}

void loop_defer(struct loop *loop, loop_fn fn, void *ctx)
{
    struct deferred *d = xcalloc(1, sizeof *d);
    *d = (struct deferred){.fn = fn, .ctx = ctx, .owned = true};
    defer(loop, d);
}

static void free_handle(uv_handle_t *h)
{
    free(h->data);
}

static void on_timer(uv_timer_t *uv)
{
    struct loop_timer *t = uv->data;
    t->now.fn(t->now.ctx);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_fn fn, void *ctx)
{
    struct loop_timer *t = xcalloc(1, sizeof *t);
    t->now.fn = fn;
    t->now.ctx = ctx;
    list_init(&t->now.link);
    uv_timer_init(&loop->uv, &t->uv);
    t->uv.data = t;
    return t;
}

void loop_timer_arm(struct loop_timer *t, int64_t ms)
{
    struct loop *loop = CONTAINER_OF(t->uv.loop, struct loop, uv);
    loop_timer_disarm(t);
    if (ms <= 0) { // libuv would run a timer that arms itself again and again, and never come to the sockets
        defer(loop, &t->now);
        return;
    }
    // libuv counts from the start of this turn, but a long callback must not shorten the wait; moving the loop's time
    // instead would break the promise of loop_clock().
    int64_t late = (int64_t)(uv_hrtime() / 1000000) - (int64_t)uv_now(&loop->uv);
    uv_timer_start(&t->uv, on_timer, (uint64_t)(ms + MAX(late, 0)), 0);
}

void loop_timer_disarm(struct loop_timer *t)
{
    struct loop *loop = CONTAINER_OF(t->uv.loop, struct loop, uv);
    uv_timer_stop(&t->uv);
    if (list_empty(&t->now.link))
        return;
    list_remove(&t->now.link);
    if (list_empty(&loop->deferred))
        uv_idle_stop(&loop->deferred_idle); // or the next turn would not wait
}

bool loop_timer_armed(const struct loop_timer *t)
{
    return uv_is_active((const uv_handle_t *)&t->uv) || !list_empty(&t->now.link);
}

void loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return;
    list_remove(&t->now.link);
    uv_close((uv_handle_t *)&t->uv, free_handle);
}

static void on_poll(uv_poll_t *uv, int status, int events)
{
    struct loop_poll *p = uv->data;
    // After an error (such as POLLERR) the owner finds out by reading or writing.
    p->fn(p->ctx, status < 0 ? LOOP_READ | LOOP_WRITE
                             : ((events & UV_READABLE) ? LOOP_READ : 0) | ((events & UV_WRITABLE) ? LOOP_WRITE : 0));
}

// The descriptors that all loops of the process watch. They are atomic, so a child of fork() can read them whatever
// other threads were doing.
enum { POLLED_MAX = 1 << 16, POLLED_WORD = 64 };
static _Atomic(uint64_t) polled[POLLED_MAX / POLLED_WORD];

static void mark_polled(int fd, bool on)
{
    uint64_t bit = UINT64_C(1) << fd % POLLED_WORD;
    if (fd < 0 || fd >= POLLED_MAX)
        return;
    if (on)
        atomic_fetch_or(&polled[fd / POLLED_WORD], bit);
    else
        atomic_fetch_and(&polled[fd / POLLED_WORD], ~bit);
}

void loop_close_polled(void)
{
    for (int fd = 0; fd < POLLED_MAX; fd++)
        if (atomic_load(&polled[fd / POLLED_WORD]) & UINT64_C(1) << fd % POLLED_WORD)
            close(fd);
}

struct loop_poll *loop_poll_new(struct loop *loop, int fd, loop_poll_fn fn, void *ctx)
{
    struct loop_poll *p = xcalloc(1, sizeof *p);
    p->fn = fn;
    p->ctx = ctx;
    p->fd = fd;
    if (uv_poll_init(&loop->uv, &p->uv, fd) != 0) {
        free(p);
        return NULL;
    }
    p->uv.data = p;
    mark_polled(fd, true);
    return p;
}

int loop_poll_set(struct loop_poll *p, int events, struct err *err)
{
    int r = events ? uv_poll_start(&p->uv,
                                   ((events & LOOP_READ) ? UV_READABLE : 0) | ((events & LOOP_WRITE) ? UV_WRITABLE : 0),
                                   on_poll)
                   : uv_poll_stop(&p->uv);
    return r == 0 ? 0 : err_set(err, ERR_IO, "cannot watch a file descriptor: %s", uv_strerror(r));
}

struct loop_poll *loop_poll_read(struct loop *loop, int fd, loop_poll_fn fn, void *ctx, struct err *err)
{
    struct loop_poll *p = loop_poll_new(loop, fd, fn, ctx);
    if (!p)
        err_set(err, ERR_IO, "the event loop takes no more files");
    else if (loop_poll_set(p, LOOP_READ, err) < 0)
        loop_poll_free(TAKE_PTR(p));
    return p;
}

void loop_poll_free(struct loop_poll *p)
{
    if (!p)
        return;
    mark_polled(p->fd, false);
    uv_close((uv_handle_t *)&p->uv, free_handle);
}

static void on_signal(uv_signal_t *uv, int signo)
{
    struct loop_signal *s = uv->data;
    s->fn(s->ctx, signo);
}

struct loop_signal *loop_signal_new(struct loop *loop, int signo, loop_signal_fn fn, void *ctx)
{
    struct loop_signal *s = xcalloc(1, sizeof *s);
    s->fn = fn;
    s->ctx = ctx;
    uv_signal_init(&loop->uv, &s->uv);
    s->uv.data = s;
    uv_signal_start(&s->uv, on_signal, signo);
    uv_unref((uv_handle_t *)&s->uv);
    return s;
}

void loop_signal_free(struct loop_signal *s)
{
    if (s)
        uv_close((uv_handle_t *)&s->uv, free_handle);
}

static void on_wakeup(uv_async_t *uv)
{
    struct loop_wakeup *w = uv->data;
    w->fn(w->ctx);
}

struct loop_wakeup *loop_wakeup_new(struct loop *loop, loop_fn fn, void *ctx)
{
    struct loop_wakeup *w = xcalloc(1, sizeof *w);
    w->fn = fn;
    w->ctx = ctx;
    if (uv_async_init(&loop->uv, &w->uv, on_wakeup) != 0)
        abort(); // no descriptor: nothing can run
    w->uv.data = w;
    return w;
}

void loop_wakeup_signal(struct loop_wakeup *w)
{
    uv_async_send(&w->uv);
}

void loop_wakeup_free(struct loop_wakeup *w)
{
    if (w)
        uv_close((uv_handle_t *)&w->uv, free_handle);
}

struct loop_hook *loop_hook_new(struct loop *loop, loop_fn fn, void *ctx)
{
    struct loop_hook *h = xcalloc(1, sizeof *h);
    *h = (struct loop_hook){.fn = fn, .ctx = ctx};
    list_insert_before(loop->hooks.next, &h->link);
    return h;
}

void loop_hook_free(struct loop_hook *h)
{
    if (h)
        list_remove(&h->link);
    free(h);
}

void loop_hook_look(struct loop_hook *h, loop_look_fn fn)
{
    h->look = fn;
}
