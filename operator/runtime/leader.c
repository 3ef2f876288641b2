// SPDX-License-Identifier: Apache-2.0
// Connects the rules of leader_fsm.h with the client and the loop.
#include "operator/runtime/leader.h"

#include "common/base/mem.h"
#include "operator/api/object_decode.h"
#include "operator/kube/inquiry.h"
#include "operator/runtime/leader_fsm.h"

#include <stdlib.h>

enum { LEASE_MS = 15000, RENEW_DEADLINE_MS = 10000, RETRY_MS = 2000, RELEASE_MS = 2000 };

struct leader {
    struct loop *loop;
    struct kube_client *client;
    struct leader_options options;
    struct leader_fsm fsm;
    struct loop_timer *timer;
    struct inquiry *call; // the request in progress, NULL = none
    enum leader_action call_action;
    bool releasing;
    void (*released)(void *ctx);
    void *released_ctx;
};

static void step(struct leader *l, enum leader_event event, const struct lease *lease, const struct err *err);

static void on_timer(void *ctx)
{
    struct leader *l = ctx;
    step(l, LEADER_TICK, NULL, NULL);
}

static enum leader_event classify(enum leader_action action, int code)
{
    if (action == LEADER_DO_GET)
        return code == 0 ? LEADER_GOT : code == ERR_NOT_FOUND ? LEADER_MISSING : LEADER_FAILED;
    if (code == ERR_NOT_FOUND) // deleted after the last read: the next read reports it
        return LEADER_CONFLICT;
    return code == 0 ? LEADER_WROTE : code == ERR_CONFLICT || code == ERR_EXISTS ? LEADER_CONFLICT : LEADER_FAILED;
}

static void finish_release(struct leader *l)
{
    void (*released)(void *ctx) = l->released;
    void *ctx = l->released_ctx;
    leader_free(l);
    if (released)
        released(ctx);
}

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct leader *l = ctx;
    l->call = NULL;
    const struct object *o = NULL;
    struct err why = *err;
    if (why.code == 0)
        object_decode(KIND_LEASE, response->body, response->len, &o, &why);
    step(l, classify(l->call_action, why.code), o ? lease_of(o) : NULL, &why);
    object_unref(o);
}

static void send(struct leader *l, enum leader_action action, int64_t timeout_ms)
{
    struct arena a = ARENA_INIT;
    struct kube_request r = {.verb = VERB_GET, .kind = KIND_LEASE, .ns = l->options.ns, .name = l->options.name};
    if (action != LEADER_DO_GET) {
        bool update = action == LEADER_DO_UPDATE;
        r.verb = update ? VERB_UPDATE : VERB_CREATE;
        r.body = leader_fsm_write(&l->fsm, l->options.ns, l->options.name, loop_wall_ms(l->loop), update, &a);
    }
    l->call_action = action;
    l->call = inquiry_send(l->client, &r, timeout_ms, on_answer, l);
    arena_done(&a);
}

// Releases the Lease when none of our writes is in progress. Otherwise a write could arrive after the release.
static void resign(struct leader *l)
{
    if (leader_fsm_resign(&l->fsm))
        send(l, LEADER_DO_UPDATE, RELEASE_MS);
    else
        finish_release(l);
}

// Takes an answer that arrives while the Lease is being released.
static void step_releasing(struct leader *l, enum leader_event event, const struct lease *lease)
{
    if (l->fsm.state == LEADER_RESIGNED) { // this is the answer to its release
        finish_release(l);
        return;
    }
    leader_step(&l->fsm, &(struct leader_input){event, lease, loop_now_ms(l->loop)});
    resign(l);
}

// `l` may be freed when it returns.
static void tell(const struct leader *l, const struct leader_output *out, const struct err *err)
{
    bool error = err && err->code && err->code != ERR_NOT_FOUND && err->code != ERR_CONFLICT && err->code != ERR_EXISTS;
    bool holder = out->holder_changed && *l->fsm.holder && !out->elected;
    const struct leader_news news = {
        .error = error ? err : NULL,
        .lost = out->lost,
        .elected = out->elected,
        .disbelieved = out->disbelieved ? l->fsm.holder : NULL,
        .disbelieved_ms = l->fsm.duration_ms,
        .holder = holder ? l->fsm.holder : NULL,
        .watches = l->fsm.watches,
        .restored = out->restored,
        .away_ms = out->away_ms,
    };
    l->options.news(l->options.ctx, &news);
}

static void step(struct leader *l, enum leader_event event, const struct lease *lease, const struct err *err)
{
    if (l->releasing) {
        step_releasing(l, event, lease);
        return;
    }
    struct leader_output out =
        leader_step(&l->fsm, &(struct leader_input){event, lease, clock_mono_ms(loop_clock(l->loop))});
    if (out.action != LEADER_DO_NOTHING)
        send(l, out.action,
             l->fsm.rules.renew_deadline_ms / 3); // one or two lost requests must not cost the Lease
    if (out.wait_ms >= 0)
        loop_timer_arm(l->timer, out.wait_ms);
    else
        loop_timer_disarm(l->timer);
    tell(l, &out, err);
}

struct leader *leader_start(struct loop *loop, struct kube_client *client, const struct leader_options *options)
{
    struct leader *l = xcalloc(1, sizeof *l);
    l->loop = loop;
    l->client = client;
    l->options = *options;
    struct leader_rules rules = {
        .identity = options->identity,
        .watches = options->watches,
        .lease_ms = options->lease_ms ? options->lease_ms : LEASE_MS,
        .renew_deadline_ms = options->renew_deadline_ms ? options->renew_deadline_ms : RENEW_DEADLINE_MS,
        .retry_ms = options->retry_ms ? options->retry_ms : RETRY_MS,
    };
    leader_fsm_init(&l->fsm, &rules, options->seed);
    l->timer = loop_timer_new(loop, on_timer, l);
    loop_timer_arm(l->timer, 0);
    return l;
}

int64_t leader_writes_until_ms(const struct leader *l)
{
    return l->releasing ? 0 : leader_fsm_writes_until_ms(&l->fsm);
}

static void release_timed_out(void *ctx)
{
    finish_release(ctx);
}

static void release_begin(void *ctx)
{
    struct leader *l = ctx;
    loop_timer_free(l->timer);
    l->timer = loop_timer_new(l->loop, release_timed_out, l);
    loop_timer_arm(l->timer, RELEASE_MS);
    if (!l->call)
        resign(l);
}

void leader_release(struct leader *l, void (*released)(void *ctx), void *ctx)
{
    l->releasing = true;
    l->released = released;
    l->released_ctx = ctx;
    loop_timer_free(l->timer); // not inside the caller, because it may still use `l`
    l->timer = loop_timer_new(l->loop, release_begin, l);
    loop_timer_arm(l->timer, 0);
}

void leader_free(struct leader *l)
{
    if (!l)
        return;
    inquiry_drop(l->call);
    loop_timer_free(l->timer);
    free(l);
}
