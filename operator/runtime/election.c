// SPDX-License-Identifier: Apache-2.0
// The thread never calls the operator. It writes down the present state, and the loop compares that state with the one
// that it reported last. The memory is therefore bounded, even if the loop looks late.
#include "operator/runtime/election.h"

#include "common/base/mem.h"
#include "common/base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXCHANGES_MAX = 64, HOLDER_SIZE = 512, WATCHES_SIZE = 256 };

enum order { ORDER_NONE, ORDER_RELEASE, ORDER_END };

struct exchange { // one request to the API server
    char method[8];
    int status;
    int64_t micros;
};

// The present state. Each count says how often something has happened.
struct election_state {
    unsigned terms;          // how often it was elected
    bool leading;            // it leads in the last of these terms
    int64_t writes_until_ms; // leader_writes_until_ms()
    unsigned holders;        // how often it saw that another replica leads
    unsigned disbelieved;    // how often it did not believe a holder
    unsigned errors;
    bool restored;   // since the loop looked last, as in struct leader_news
    int64_t away_ms; // the longest time since the loop looked last, as in struct leader_news
    char holder[HOLDER_SIZE], watches[WATCHES_SIZE];
    char disbelieved_holder[HOLDER_SIZE];
    int64_t disbelieved_ms;
    struct err error; // the last error
    bool released;
    struct exchange exchanges[EXCHANGES_MAX]; // since the loop looked last
    int n_exchanges;
};

struct election {
    struct election_options options; // as given by the caller
    struct loop_wakeup *news;        // for the operator's loop
    struct election_state told;      // the state that the loop has reported; only the loop uses it
    void (*released)(void *ctx);
    void *released_ctx;

    pthread_mutex_t lock;
    struct election_state state; // protected by the lock
    _Atomic(int) order;

    // Only the thread uses these:
    pthread_t thread;
    struct loop *loop;
    struct kube_client *client;
    struct leader *leader; // NULL after it was released
    struct loop_hook *hook;
    struct loop_wakeup *orders;
};

// The thread

static struct election_state *state_begin(struct election *e)
{
    pthread_mutex_lock(&e->lock);
    e->state.writes_until_ms = e->leader ? leader_writes_until_ms(e->leader) : 0;
    return &e->state;
}

static void state_end(struct election *e)
{
    pthread_mutex_unlock(&e->lock);
    loop_wakeup_signal(e->news);
}

// The thread calls this before it waits: the Lease may have been renewed.
static void publish(void *ctx)
{
    struct election *e = ctx;
    state_begin(e);
    pthread_mutex_unlock(&e->lock);
}

static void on_leader(void *ctx, const struct leader_news *n)
{
    struct election_state *s = state_begin(ctx);
    s->terms += n->elected;
    s->leading = n->elected || (s->leading && !n->lost);
    s->restored = s->restored || n->restored;
    s->away_ms = MAX(s->away_ms, n->away_ms);
    if (n->error) {
        s->errors++;
        s->error = *n->error;
    }
    if (n->disbelieved) {
        s->disbelieved++;
        s->disbelieved_ms = n->disbelieved_ms;
        snprintf(s->disbelieved_holder, sizeof s->disbelieved_holder, "%s", n->disbelieved);
    }
    if (n->holder) {
        s->holders++;
        snprintf(s->holder, sizeof s->holder, "%s", n->holder);
        snprintf(s->watches, sizeof s->watches, "%s", n->watches);
    }
    state_end(ctx);
}

static void on_exchange(void *ctx, const char *method, int http_status, int64_t micros)
{
    struct election_state *s = state_begin(ctx);
    if (s->n_exchanges < EXCHANGES_MAX) {
        struct exchange *x = &s->exchanges[s->n_exchanges++];
        *x = (struct exchange){.status = http_status, .micros = micros};
        snprintf(x->method, sizeof x->method, "%s", method);
    }
    state_end(ctx);
}

static void on_released(void *ctx)
{
    struct election *e = ctx;
    e->leader = NULL; // it has freed itself
    state_begin(e)->released = true;
    state_end(e);
}

static void on_order(void *ctx)
{
    struct election *e = ctx;
    switch ((enum order)atomic_exchange(&e->order, ORDER_NONE)) {
    case ORDER_RELEASE:
        leader_release(e->leader, on_released, e);
        break;
    case ORDER_END:
        loop_stop(e->loop);
        break;
    case ORDER_NONE:
        break;
    }
}

static void *run(void *ctx)
{
    struct election *e = ctx;
    loop_run(e->loop);
    return NULL;
}

static void give_order(struct election *e, enum order order)
{
    atomic_store(&e->order, order);
    loop_wakeup_signal(e->orders);
}

// The operator's loop

static void tell_exchanges(const struct election *e, const struct election_state *now)
{
    for (int i = 0; e->options.observe && i < now->n_exchanges; i++) {
        const struct exchange *x = &now->exchanges[i];
        e->options.observe(e->options.observe_ctx, x->method, x->status, x->micros);
    }
}

static void tell(struct election *e, const struct election_state *before, const struct election_state *now)
{
    const struct leader_options *o = &e->options.leader;
    bool holder = now->holders != before->holders && !now->leading;
    const struct leader_news news = {
        .error = now->errors != before->errors ? &now->error : NULL,
        .lost = before->leading && (!now->leading || now->terms != before->terms),
        .elected = now->leading && (!before->leading || now->terms != before->terms),
        .disbelieved = now->disbelieved != before->disbelieved ? now->disbelieved_holder : NULL,
        .disbelieved_ms = now->disbelieved_ms,
        .holder = holder ? now->holder : NULL,
        .watches = now->watches,
        .restored = now->restored,
        .away_ms = now->away_ms,
    };
    o->news(o->ctx, &news);
}

static void on_news(void *ctx)
{
    struct election *e = ctx;
    struct election_state before = e->told;
    pthread_mutex_lock(&e->lock);
    e->told = e->state;
    e->state.n_exchanges = 0;
    e->state.restored = false;
    e->state.away_ms = 0;
    pthread_mutex_unlock(&e->lock);
    tell_exchanges(e, &e->told);
    if (!e->released) {
        tell(e, &before, &e->told);
        return;
    }
    if (e->told.released) {
        void (*released)(void *ctx) = e->released;
        void *released_ctx = e->released_ctx;
        election_free(e);
        released(released_ctx);
    }
}

static int start_thread(struct election *e, struct err *err)
{
    int r = thread_start(&e->thread, run, e);
    return r == 0 ? 0 : err_set(err, ERR_INTERNAL, "cannot start the thread of the election: %s", strerror(r));
}

static void take_down(struct election *e)
{
    leader_free(TAKE_PTR(e->leader));
    kube_client_free(e->client);
    loop_hook_free(e->hook);
    loop_wakeup_free(e->orders);
    loop_free(e->loop);
    loop_wakeup_free(e->news);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static struct leader *start_leader(struct election *e)
{
    struct leader_options o = e->options.leader;
    o.news = on_leader;
    o.ctx = e;
    return leader_start(e->loop, e->client, &o);
}

struct election *election_start(struct loop *loop, const struct election_options *options, struct err *err)
{
    struct election *e = xcalloc(1, sizeof *e);
    e->options = *options;
    pthread_mutex_init(&e->lock, NULL);
    e->news = loop_wakeup_new(loop, on_news, e);
    e->loop = loop_new();
    e->orders = loop_wakeup_new(e->loop, on_order, e);
    e->hook = loop_hook_new(e->loop, publish, e);
    const struct kube_client_options co = {.max_in_flight = 1, .observe = on_exchange, .observe_ctx = e};
    int r = kube_client_new(e->loop, options->config, &co, &e->client, err);
    if (r == 0) {
        e->leader = start_leader(e);
        r = start_thread(e, err);
    }
    if (r < 0) {
        take_down(e);
        return NULL;
    }
    return e;
}

bool election_is_leading(const struct election *e)
{
    return e->told.leading && !e->released;
}

// If a term began and the operator has not heard of it, another replica may have led before it. Decisions from before
// do not count in that term.
bool election_may_write(struct election *e)
{
    if (!election_is_leading(e))
        return false;
    pthread_mutex_lock(&e->lock);
    bool same = e->state.leading && e->state.terms == e->told.terms;
    int64_t until = same ? e->state.writes_until_ms : 0;
    pthread_mutex_unlock(&e->lock);
    return clock_mono_us(&clock_system) / 1000 < until;
}

void election_release(struct election *e, void (*released)(void *ctx), void *ctx)
{
    e->released = released;
    e->released_ctx = ctx;
    give_order(e, ORDER_RELEASE);
}

void election_free(struct election *e)
{
    if (!e)
        return;
    give_order(e, ORDER_END);
    pthread_join(e->thread, NULL);
    take_down(e);
}
