// SPDX-License-Identifier: Apache-2.0
#include "sdk/c/client/client_threads.h"

#include "common/base/cond.h"
#include "common/base/mem.h"
#include "common/base/spin.h"
#include "common/base/thread.h"
#include "sdk/c/client/client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    // After this long without a turn of callers, the thread turns again, so that the connection stays alive.
    REST_MS = 250,
    LINGER_NS = 20 * 1000, // more calls may follow the first one: then all are sent together
};

struct client_threads {
    struct cadre_client *client;
    pthread_mutex_t lock;
    pthread_cond_t changed; // something was answered, or the loop is free
    pthread_cond_t wanted;  // the thread waits for it
    pthread_t thread;
    int alarm;   // ends the sleep of the thread that turns
    bool taken;  // a caller's thread turns the loop
    bool rung;   // the alarm
    bool rests;  // the thread rests, while callers turn
    bool handed; // the thread must turn again
    bool ending;
    unsigned n_waiting, n_watching;
    uint64_t passes; // turns of callers
    struct spin spin;
};

static int64_t now_ms(void)
{
    return clock_mono_ms(&clock_system);
}

static void ring(struct client_threads *t)
{
    const uint64_t one = 1;
    if (t->rung)
        return;
    t->rung = true;
    while (write(t->alarm, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void quiet(struct client_threads *t)
{
    uint64_t n;
    if (!t->rung)
        return;
    while (read(t->alarm, &n, sizeof n) < 0 && errno == EINTR)
        ;
    t->rung = false;
}

// end: in ms of the monotonic clock. Call it with the lock.
static void sleep_on(struct client_threads *t, pthread_cond_t *cond, int64_t end)
{
    if (end == INT64_MAX)
        pthread_cond_wait(cond, &t->lock);
    else
        (void)cond_wait_until(cond, &t->lock, end);
}

// Sleeps until the loop has work, the alarm rings, or the time is over. Returns whether the alarm rang. Call it without
// the lock.
static bool sleep_in(struct client_threads *t, int64_t timeout_ms, bool spins)
{
    struct pollfd fds[] = {{.fd = loop_fd(t->client->loop), .events = POLLIN}, {.fd = t->alarm, .events = POLLIN}};
    int64_t begun = clock_mono_us(&clock_system), took = 0;
    int found = 0;
    bool looks = spins && timeout_ms && spin_wanted(&t->spin);
    while (looks && !found && took < SPIN_US) {
        found = poll(fds, 2, 0);
        if (!found)
            sched_yield(); // the process that must answer may wait for this core
        took = clock_mono_us(&clock_system) - begun;
    }
    if (looks)
        spin_looked(&t->spin, took, found > 0);
    if (found > 0)
        return fds[1].revents;
    begun = clock_mono_us(&clock_system);
    (void)poll(fds, 2, timeout_ms < 0 ? -1 : (int)MIN(timeout_ms, (int64_t)INT32_MAX));
    if (spins)
        spin_slept(&t->spin, clock_mono_us(&clock_system) - begun);
    return fds[1].revents;
}

static void tell(struct client_threads *t)
{
    if (t->n_waiting || t->n_watching)
        pthread_cond_broadcast(&t->changed);
}

// Sends waiting calls, sleeps if there is nothing else to do, and reads. It sleeps without the lock, until there is
// something to read. mine: the turn of a caller that waits for an answer.
static void turn(struct client_threads *t, int64_t most_ms, bool mine)
{
    const struct timespec linger = {.tv_nsec = LINGER_NS};
    struct cadre_client *c = t->client;
    uint64_t before = c->answered;
    bool spins = mine && !c->settings.sleeps;
    quiet(t);
    int64_t timeout_ms = client_flush(c);
    if (c->answered == before && timeout_ms && most_ms) {
        if (most_ms > 0 && (timeout_ms < 0 || timeout_ms > most_ms))
            timeout_ms = most_ms;
        pthread_mutex_unlock(&t->lock);
        bool called = sleep_in(t, timeout_ms, spins);
        if (called && !mine)
            nanosleep(&linger, NULL);
        pthread_mutex_lock(&t->lock);
    }
    if (!c->ended)
        client_turn(c, 0);
    if (c->answered != before)
        tell(t);
    // A caller has taken the loop meanwhile, and may wait for this answer.
    if (c->answered != before && t->taken && !mine)
        ring(t);
}

// The thread

static void rest(struct client_threads *t, uint64_t *seen)
{
    *seen = t->passes;
    t->rests = true;
    sleep_on(t, &t->wanted, now_ms() + REST_MS);
    t->rests = false;
    if (t->handed)
        *seen = t->passes;
    t->handed = false;
}

static void *run(void *arg)
{
    struct client_threads *t = arg;
    uint64_t seen = 0;
    pthread_mutex_lock(&t->lock);
    while (!t->ending)
        if (t->taken || t->passes != seen)
            rest(t, &seen);
        else
            turn(t, -1, false);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void make_lock(struct client_threads *t)
{
    pthread_mutexattr_t recursive; // callbacks start calls
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&t->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    cond_init(&t->changed);
    cond_init(&t->wanted);
}

void client_threads_start(struct cadre_client *c)
{
    struct client_threads *t = xcalloc(1, sizeof *t);
    t->client = c;
    t->alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->alarm < 0)
        abort(); // as when the loop gets no descriptor
    make_lock(t);
    c->threads = t; // before the thread starts: its first callback may use the client
    if (thread_start(&t->thread, run, t) != 0)
        abort();
}

void client_threads_stop(struct client_threads *t)
{
    t->ending = true;
    ring(t);
    pthread_cond_signal(&t->wanted);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_mutex_lock(&t->lock);
}

void client_threads_free(struct client_threads *t)
{
    if (!t)
        return;
    pthread_cond_destroy(&t->changed);
    pthread_cond_destroy(&t->wanted);
    pthread_mutex_destroy(&t->lock);
    close(t->alarm);
    free(t);
}

// Callers

void client_enter(struct cadre_client *c)
{
    if (c->threads)
        pthread_mutex_lock(&c->threads->lock);
}

static void hand_over(struct client_threads *t)
{
    if (!t->rests || t->handed)
        return;
    t->handed = true;
    pthread_cond_signal(&t->wanted);
}

void client_leave(struct cadre_client *c)
{
    if (c->threads)
        pthread_mutex_unlock(&c->threads->lock);
}

void client_leave_waiting(struct cadre_client *c)
{
    struct client_threads *t = c->threads;
    if (t && !t->taken && t->n_waiting)
        pthread_cond_broadcast(&t->changed); // one of the callers takes the loop
    else if (t && !t->taken && c->calls.used > c->n_kept)
        hand_over(t);
    client_leave(c);
}

int64_t client_end_of(int64_t timeout_ms)
{
    int64_t now = now_ms();
    return timeout_ms < 0 || timeout_ms > INT64_MAX - now ? INT64_MAX : now + timeout_ms;
}

bool client_pass(struct cadre_client *c, int64_t end)
{
    struct client_threads *t = c->threads;
    int64_t left = MAX(end - now_ms(), (int64_t)0);
    if (!t) {
        client_turn(c, left);
        return left > 0;
    }
    if (c->ended || c->turning)
        return false;
    if (t->taken && left) {
        t->n_waiting++;
        sleep_on(t, &t->changed, end);
        t->n_waiting--;
    } else if (!t->taken) {
        t->taken = true;
        t->passes++;
        turn(t, left, true);
        t->taken = false;
    }
    return left > 0;
}

bool client_watch(struct cadre_client *c, int64_t end)
{
    struct client_threads *t = c->threads;
    int64_t left = MAX(end - now_ms(), (int64_t)0);
    if (c->ended || c->turning || !left)
        return false;
    if (!t->taken && !t->n_waiting)
        hand_over(t);
    t->n_watching++;
    sleep_on(t, &t->changed, end);
    t->n_watching--;
    return true;
}

void client_stir(struct cadre_client *c)
{
    struct client_threads *t = c->threads;
    if (!t || c->turning)
        return;
    if (t->rests && !t->taken)
        hand_over(t);
    else
        ring(t);
}

bool client_is_turned(const struct cadre_client *c)
{
    return c->threads && c->threads->taken;
}

void client_tell(struct cadre_client *c)
{
    if (c->threads)
        tell(c->threads);
}
