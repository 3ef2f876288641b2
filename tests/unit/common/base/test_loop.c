// SPDX-License-Identifier: Apache-2.0
#include "common/base/loop_resolve.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char trace[64]; // what was called, in order

static void note_a(void *ctx)
{
    (void)ctx;
    strncat(trace, "a", sizeof trace - strlen(trace) - 1);
}

static void note_b(void *ctx)
{
    (void)ctx;
    strncat(trace, "b", sizeof trace - strlen(trace) - 1);
}

static void defer_b(void *ctx)
{
    note_a(NULL);
    loop_defer(ctx, note_b, NULL);
}

static int setup(void **state)
{
    trace[0] = '\0';
    *state = loop_new();
    return 0;
}

static int setup_spinning(void **state)
{
    setup(state);
    loop_spin(*state);
    return 0;
}

static int teardown(void **state)
{
    loop_free(*state);
    return 0;
}

static struct {
    int turns;
    int64_t longest_us;
} observed;

static void observe(void *ctx, int64_t worked_us)
{
    (void)ctx;
    assert_true(worked_us >= 0);
    observed.turns++;
    observed.longest_us = MAX(observed.longest_us, worked_us);
}

static void work_for_20_ms(void *ctx)
{
    (void)ctx;
    for (int64_t end = clock_mono_us(&clock_system) + 20000; clock_mono_us(&clock_system) < end;)
        continue;
}

static void a_turn_is_as_long_as_what_it_does(void **state)
{
    memset(&observed, 0, sizeof observed);
    loop_observe(*state, observe, NULL);
    loop_defer(*state, work_for_20_ms, NULL);
    for (int i = 0; i < 3; i++)
        loop_run_once(*state, 1);
    assert_true(observed.turns >= 3);
    assert_true(observed.longest_us >= 20000);
}

static void waiting_is_no_work(void **state)
{
    enum { WAIT_MS = 300, EARLY_MS = 2 }; // timers count whole milliseconds
    int64_t begun_us = clock_mono_us(&clock_system);
    memset(&observed, 0, sizeof observed);
    loop_observe(*state, observe, NULL);
    loop_run_once(*state, WAIT_MS);
    loop_run_once(*state, 1);
    assert_true(observed.turns >= 2);
    // Other work of the machine may count as work. The wait does not.
    int64_t took_us = clock_mono_us(&clock_system) - begun_us;
    assert_true(observed.longest_us <= took_us - (WAIT_MS - EARLY_MS) * 1000);
}

static void deferred_calls_run_on_the_next_turn_in_order(void **state)
{
    struct loop *loop = *state;
    loop_defer(loop, note_a, NULL);
    loop_defer(loop, note_b, NULL);
    loop_defer(loop, note_a, NULL);
    assert_string_equal(trace, "");
    assert_true(loop_run_once(loop, 0));
    assert_string_equal(trace, "aba");
    assert_false(loop_run_once(loop, 0)); // and once only
    assert_string_equal(trace, "aba");
}

static void what_a_deferred_call_defers_waits_a_turn(void **state)
{
    struct loop *loop = *state;
    loop_defer(loop, defer_b, loop);
    loop_run_once(loop, 0);
    assert_string_equal(trace, "a");
    loop_run_once(loop, 0);
    assert_string_equal(trace, "ab");
}

static void calls_still_deferred_at_the_end_are_dropped(void **state)
{
    loop_defer(*state, note_a, NULL); // the leak checker sees to the rest
}

static void a_loop_with_nothing_to_do_returns(void **state)
{
    struct loop *loop = *state;
    loop_run(loop);
    assert_false(loop_run_once(loop, 5));
}

static void timers_fire_in_order_of_their_deadlines_and_once(void **state)
{
    struct loop *loop = *state;
    struct loop_timer *b = loop_timer_new(loop, note_b, NULL), *a = loop_timer_new(loop, note_a, NULL);
    loop_timer_arm(a, 1000000);
    loop_timer_arm(a, 2); // replaces
    loop_timer_arm(b, 8);
    assert_true(loop_timer_armed(a));
    assert_string_equal(trace, "");
    loop_run(loop);
    assert_string_equal(trace, "ab");
    assert_false(loop_timer_armed(a));
    loop_timer_free(a);
    loop_timer_free(b);
    loop_timer_free(NULL);
}

static void a_disarmed_timer_is_silent(void **state)
{
    struct loop *loop = *state;
    struct loop_timer *t = loop_timer_new(loop, note_a, NULL);
    loop_timer_arm(t, 0);
    loop_timer_disarm(t);
    loop_run(loop);
    assert_string_equal(trace, "");
    loop_timer_free(t);
}

static struct loop_timer *suicidal;

static void free_self(void *ctx)
{
    (void)ctx;
    loop_timer_free(suicidal);
    note_a(NULL);
}

static void a_timer_may_free_itself(void **state)
{
    suicidal = loop_timer_new(*state, free_self, NULL);
    loop_timer_arm(suicidal, 0);
    loop_run(*state);
    assert_string_equal(trace, "a");
}

static struct loop_timer *eager;

static void again_at_once(void *ctx)
{
    (void)ctx;
    note_a(NULL);
    loop_timer_arm(eager, 0);
}

static void a_timer_that_arms_itself_at_once_runs_once_a_turn(void **state)
{
    struct loop *loop = *state;
    struct loop_timer *b = loop_timer_new(loop, note_b, NULL);
    eager = loop_timer_new(loop, again_at_once, NULL);
    loop_timer_arm(eager, 0);
    loop_timer_arm(b, 0);
    assert_true(loop_timer_armed(eager));
    loop_run_once(loop, 0);
    assert_string_equal(trace, "ab");
    loop_run_once(loop, 0);
    assert_string_equal(trace, "aba");
    assert_true(loop_timer_armed(eager));
    loop_timer_free(eager);
    loop_timer_free(b);
}

// A turn is bounded although a descriptor is watched that never becomes ready: without the bound this test would hang.
static void a_turn_waits_at_most_its_timeout(void **state)
{
    struct loop *loop = *state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    struct err err = ERR_INIT;
    struct loop_poll *p = loop_poll_new(loop, fds[0], NULL, NULL);
    assert_int_equal(loop_poll_set(p, LOOP_READ, &err), 0);
    for (int i = 0; i < 200; i++)
        assert_true(loop_run_once(loop, i % 3));
    loop_poll_free(p);
    loop_run_once(loop, 0);
    close(fds[0]);
    close(fds[1]);
}

static int polled;

static void on_ready(void *ctx, int events)
{
    (void)ctx;
    polled |= events;
}

static void descriptors_are_reported_while_watched(void **state)
{
    struct loop *loop = *state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    struct err err = ERR_INIT;
    struct loop_poll *r = loop_poll_new(loop, fds[0], on_ready, NULL);
    struct loop_poll *w = loop_poll_new(loop, fds[1], on_ready, NULL);
    polled = 0;
    loop_poll_set(r, LOOP_READ, &err);
    loop_run_once(loop, 0);
    assert_int_equal(polled, 0);
    loop_poll_set(w, LOOP_WRITE, &err);
    loop_run_once(loop, 1000);
    assert_int_equal(polled, LOOP_WRITE);
    loop_poll_set(w, 0, &err);
    assert_int_equal(write(fds[1], "x", 1), 1);
    polled = 0;
    loop_run_once(loop, 1000);
    assert_int_equal(polled, LOOP_READ);
    loop_poll_free(r);
    loop_poll_free(w);
    loop_poll_free(NULL);
    loop_run_once(loop, 0);
    close(fds[0]);
    close(fds[1]);
}

static void a_regular_file_cannot_be_polled(void **state)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_null(loop_poll_new(*state, fd, on_ready, NULL));
    close(fd);
}

static void stop_from_signal(void *ctx, int signo)
{
    assert_int_equal(signo, SIGUSR1);
    loop_stop(ctx);
}

static void signals_arrive_on_the_loop_and_do_not_keep_it_alive(void **state)
{
    struct loop *loop = *state;
    struct loop_signal *s = loop_signal_new(loop, SIGUSR1, stop_from_signal, loop);
    loop_run(loop); // returns: nothing else is alive
    struct loop_timer *t = loop_timer_new(loop, note_a, NULL);
    loop_timer_arm(t, 1000000);
    raise(SIGUSR1);
    loop_run(loop);
    assert_string_equal(trace, "");
    loop_signal_free(s);
    loop_signal_free(NULL);
    loop_timer_free(t);
}

static struct loop_wakeup *wakeup;

static void *signal_twice(void *ctx)
{
    (void)ctx;
    loop_wakeup_signal(wakeup);
    loop_wakeup_signal(wakeup);
    return NULL;
}

static void note_and_free_wakeup(void *ctx)
{
    note_a(ctx);
    loop_wakeup_free(wakeup);
}

static void another_thread_wakes_the_loop_and_signals_become_one_call(void **state)
{
    struct loop *loop = *state;
    pthread_t thread;
    wakeup = loop_wakeup_new(loop, note_and_free_wakeup, NULL);
    assert_int_equal(pthread_create(&thread, NULL, signal_twice, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(trace, "");
    loop_run(loop); // it kept the loop alive, and lets it end when it is freed
    assert_string_equal(trace, "a");
    loop_wakeup_free(NULL);
}

static void a_stop_from_outside_does_not_outlive_the_loop(void **state)
{
    loop_stop(*state); // loop_free() must still let libuv close what it holds
}

static void burn(void *ctx)
{
    struct loop *loop = ctx;
    int64_t before = loop_now_ms(loop), real = clock_mono_ms(&clock_system);
    while (clock_mono_ms(&clock_system) < real + 20)
        ;
    struct loop_timer *t = loop_timer_new(loop, note_a, NULL);
    loop_timer_arm(t, 1);
    if (loop_now_ms(loop) == before)
        note_b(NULL); // the time stood still in this turn
    loop_timer_free(t);
}

static void the_clock_stands_still_within_a_turn(void **state)
{
    struct loop *loop = *state;
    int64_t before = loop_now_ms(loop);
    loop_defer(loop, burn, loop);
    loop_run(loop);
    assert_string_equal(trace, "b");
    loop_run_once(loop, 0);
    assert_true(loop_now_ms(loop) >= before + 20);
    assert_true(loop_wall_ms(loop) > 1600000000000);
}

static void a_hook_runs_before_each_wait_and_keeps_nothing_alive(void **state)
{
    struct loop *loop = *state;
    struct loop_hook *h = loop_hook_new(loop, note_a, NULL);
    assert_false(loop_run_once(loop, 0));
    loop_defer(loop, note_b, NULL);
    loop_run_once(loop, 0);
    assert_non_null(strstr(trace, "ba"));
    loop_hook_free(h);
    trace[0] = '\0';
    loop_run_once(loop, 0);
    assert_string_equal(trace, "");
    loop_hook_free(NULL);
}

struct lookup {
    int calls, code, found;
};

static void on_lookup(void *ctx, const struct addrinfo *found, const struct err *err)
{
    struct lookup *l = ctx;
    l->calls++;
    l->code = err->code;
    l->found = found != NULL;
}

static void addresses_are_looked_up_off_the_loop(void **state)
{
    struct loop *loop = *state;
    struct lookup number = {0}, name = {0}, none = {0}, cancelled = {0};
    loop_resolve_new(loop, "127.0.0.1", "80", on_lookup, &number);
    loop_resolve_new(loop, "localhost", "80", on_lookup, &name);
    loop_resolve_new(loop, "no such host", "80", on_lookup, &none);
    loop_resolve_cancel(loop_resolve_new(loop, "::1", "80", on_lookup, &cancelled));
    loop_resolve_cancel(loop_resolve_new(loop, "localhost", "80", on_lookup, &cancelled));
    loop_resolve_cancel(NULL);
    assert_int_equal(number.calls, 0); // never inside the call
    while (number.calls + name.calls + none.calls < 3)
        loop_run_once(loop, 1000);
    assert_true(number.found && number.code == 0);
    assert_true(name.found && name.code == 0);
    assert_true(!none.found && none.code < 0);
    loop_run(loop);
    assert_int_equal(cancelled.calls, 0);
}

enum { ROUNDS = 2000 };

struct pinger {
    struct loop *loop;
    int fd, rounds;
};

static void ping(void *ctx, int events)
{
    struct pinger *p = ctx;
    char byte = 'x';
    (void)events;
    if (p->rounds > 0)
        assert_int_equal(read(p->fd, &byte, 1), 1);
    if (p->rounds++ == ROUNDS)
        loop_stop(p->loop);
    else
        assert_int_equal(write(p->fd, &byte, 1), 1);
}

static void *pong(void *ctx)
{
    const int *fd = ctx;
    char byte;
    for (int i = 0; i < ROUNDS; i++)
        if (read(*fd, &byte, 1) != 1 || write(*fd, &byte, 1) != 1)
            abort();
    return NULL;
}

// It looks for the answers before it sleeps, unless this machine has one CPU, and misses none.
static void a_loop_that_spins_hears_every_answer(void **state)
{
    struct loop *loop = *state;
    struct err err = ERR_INIT;
    pthread_t other;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct pinger p = {loop, fds[0], 0};
    struct loop_poll *poll = loop_poll_new(loop, fds[0], ping, &p);
    assert_int_equal(pthread_create(&other, NULL, pong, &fds[1]), 0);
    loop_poll_set(poll, LOOP_READ, &err);
    ping(&p, 0);
    loop_run(loop);
    assert_int_equal(p.rounds, ROUNDS + 1);
    assert_int_equal(pthread_join(other, NULL), 0);
    loop_poll_free(poll);
    loop_run_once(loop, 0);
    close(fds[0]);
    close(fds[1]);
}

// Reads without waiting, and leaves the next question to the hook, as servers do.
struct caller {
    struct loop *loop;
    int fd, rounds;
    bool due;
};

static bool hear(void *ctx)
{
    struct caller *c = ctx;
    char byte;
    if (recv(c->fd, &byte, 1, MSG_DONTWAIT) != 1)
        return false;
    assert_false(c->due); // the hook has run since the last one
    c->due = c->rounds++ < ROUNDS - 1;
    if (!c->due)
        loop_stop(c->loop);
    return true;
}

static void hear_late(void *ctx, int events)
{
    (void)events;
    (void)hear(ctx);
}

static void ask(void *ctx)
{
    struct caller *c = ctx;
    if (c->due)
        assert_int_equal(write(c->fd, "x", 1), 1);
    c->due = false;
}

static void what_a_look_finds_itself_is_followed_by_the_hooks(void **state)
{
    struct loop *loop = *state;
    struct err err = ERR_INIT;
    pthread_t other;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct caller c = {loop, fds[0], 0, .due = true};
    struct loop_poll *poll = loop_poll_new(loop, fds[0], hear_late, &c);
    struct loop_hook *hook = loop_hook_new(loop, ask, &c);
    loop_hook_look(hook, hear);
    assert_int_equal(pthread_create(&other, NULL, pong, &fds[1]), 0);
    loop_poll_set(poll, LOOP_READ, &err);
    loop_run(loop);
    assert_int_equal(c.rounds, ROUNDS);
    assert_int_equal(pthread_join(other, NULL), 0);
    loop_hook_free(hook);
    loop_poll_free(poll);
    loop_run_once(loop, 0);
    close(fds[0]);
    close(fds[1]);
}

static void a_loop_in_which_nothing_can_happen_has_no_time_limit(void **state)
{
    struct loop_timer *timer = loop_timer_new(*state, note_a, NULL);
    assert_int_equal(loop_timeout_ms(*state), -1);
    loop_timer_arm(timer, 60 * 1000);
    loop_run_once(*state, 0); // libuv tells the kernel about its descriptors
    assert_true(loop_timeout_ms(*state) > 0);
    loop_timer_disarm(timer);
    assert_int_equal(loop_timeout_ms(*state), -1);
    loop_timer_free(timer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define LOOP_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        LOOP_TEST(a_turn_is_as_long_as_what_it_does),
        LOOP_TEST(waiting_is_no_work),
        LOOP_TEST(deferred_calls_run_on_the_next_turn_in_order),
        LOOP_TEST(what_a_deferred_call_defers_waits_a_turn),
        LOOP_TEST(calls_still_deferred_at_the_end_are_dropped),
        LOOP_TEST(a_loop_with_nothing_to_do_returns),
        LOOP_TEST(a_loop_in_which_nothing_can_happen_has_no_time_limit),
        LOOP_TEST(timers_fire_in_order_of_their_deadlines_and_once),
        LOOP_TEST(a_disarmed_timer_is_silent),
        LOOP_TEST(a_timer_may_free_itself),
        LOOP_TEST(a_timer_that_arms_itself_at_once_runs_once_a_turn),
        LOOP_TEST(a_turn_waits_at_most_its_timeout),
        LOOP_TEST(descriptors_are_reported_while_watched),
        LOOP_TEST(a_regular_file_cannot_be_polled),
        LOOP_TEST(signals_arrive_on_the_loop_and_do_not_keep_it_alive),
        LOOP_TEST(another_thread_wakes_the_loop_and_signals_become_one_call),
        LOOP_TEST(a_stop_from_outside_does_not_outlive_the_loop),
        LOOP_TEST(the_clock_stands_still_within_a_turn),
        LOOP_TEST(a_hook_runs_before_each_wait_and_keeps_nothing_alive),
        LOOP_TEST(addresses_are_looked_up_off_the_loop),
#define SPIN_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_spinning, teardown)
        SPIN_TEST(timers_fire_in_order_of_their_deadlines_and_once),
        SPIN_TEST(a_timer_that_arms_itself_at_once_runs_once_a_turn),
        SPIN_TEST(a_turn_waits_at_most_its_timeout),
        SPIN_TEST(descriptors_are_reported_while_watched),
        SPIN_TEST(signals_arrive_on_the_loop_and_do_not_keep_it_alive),
        SPIN_TEST(another_thread_wakes_the_loop_and_signals_become_one_call),
        SPIN_TEST(a_hook_runs_before_each_wait_and_keeps_nothing_alive),
        SPIN_TEST(a_loop_that_spins_hears_every_answer),
        LOOP_TEST(what_a_look_finds_itself_is_followed_by_the_hooks),
        SPIN_TEST(what_a_look_finds_itself_is_followed_by_the_hooks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
