// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call.h"

#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/join.h"
#include "operator/proxy/object.h"
#include "operator/proxy/task.h"
#include "operator/proxy/tenant.h"
#include "operator/proxy/wait_queue.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t cost_of(uint32_t n_slots)
{
    return sizeof(struct call) + n_slots * sizeof(struct call_slot);
}

struct call *call_new(struct session *s, const struct request *q, struct group *g)
{
    uint32_t n = request_ranks(q);
    if (!quota_charge(s->quota, cost_of(n)))
        return NULL;
    struct call *c = n == 1 ? reuse_take(&s->router->calls, cost_of(n)) : xmalloc(cost_of(n));
    memset(c, 0, offsetof(struct call, req));
    c->req = *q;
    c->router = s->router;
    c->session = s;
    c->quota = quota_ref(s->quota);
    c->tenant = tenant_ref(s->tenant);
    c->tenant->n_calls++;
    c->order = s->order;
    c->group = g;
    c->n_slots = n;
    stats_begin(&c->stat, &g->stats, stats_find(&g->stats, q->role, q->method));
    s->order->refs++;
    list_append(&s->open, &c->open);
    list_append(&g->calls, &c->of_group);
    list_init(&c->link);
    list_init(&c->flowing);
    idmap_add(&s->calls, q->id, c);
    s->router->n_calls++;
    if (q->timeout_ms) {
        c->begun_ms = clock_mono_ms(s->router->config.clock);
        deadlines_add(&s->router->deadlines, &c->deadline, c->begun_ms + q->timeout_ms);
    }
    return c;
}

static bool waits_in(enum call_state state)
{
    return state == CALL_WAITING || state == CALL_QUEUED;
}

// For its group or a slot it waits for a bounded time, however late a deadline its client gave. 0 = no deadline.
static int64_t patience_ms(const struct call *c, enum call_state state)
{
    const struct router_config *config = &c->router->config;
    int64_t given = c->req.timeout_ms;
    if (!waits_in(state))
        return given;
    if (given)
        return MIN(given, config->task_wait_ms);
    return state == CALL_QUEUED ? config->task_wait_ms : config->ready_wait_ms;
}

static void set_patience(struct call *c, enum call_state next)
{
    struct router *r = c->router;
    int64_t ms = patience_ms(c, next), given = c->req.timeout_ms;
    if (given && given <= r->config.task_wait_ms) // it stays as it is
        return;
    if (ms)
        deadlines_add(&r->deadlines, &c->deadline, (given ? c->begun_ms : clock_mono_ms(r->config.clock)) + ms);
    else
        deadlines_del(&r->deadlines, &c->deadline);
}

// For the assertion alone.
__attribute__((unused)) static bool may_follow(enum call_state now, enum call_state next)
{
    switch (now) {
    case CALL_NEW:
        return true;
    case CALL_BLOCKED:
        return next > CALL_BLOCKED;
    case CALL_WAITING:
        return next > CALL_WAITING;
    case CALL_QUEUED:
    case CALL_STREAMING:
    case CALL_RUNNING:
        return next > now && next > CALL_QUEUED;
    case CALL_ANSWERED:
        break;
    }
    return false;
}

void call_become(struct call *c, enum call_state next)
{
    assert(may_follow(c->state, next));
    if (c->queue)
        wait_queue_leave(c);
    list_remove(&c->link);
    set_patience(c, next);
    c->session->n_streams += next == CALL_STREAMING;
    c->session->n_streams -= c->state == CALL_STREAMING;
    c->state = next;
}

void call_free_if_over(struct call *c)
{
    if (c->session || c->left)
        return;
    if (c->id)
        idmap_del(&c->router->running, c->id);
    list_remove(&c->flowing);
    c->router->n_calls--;
    c->order->lasting -= c->lasting;
    session_order_unref(c->order);
    quota_refund(c->quota, cost_of(c->n_slots));
    quota_unref(c->quota);
    c->tenant->n_calls--;
    tenant_unref(c->tenant);
    if (c->n_slots == 1)
        reuse_give(&c->router->calls, c);
    else
        free(c);
}

// What is unfinished of its bodies ends, and those who were told to pause are let go.
static void call_abort(struct call *c)
{
    args_abort(c);
    if (!answer_abort(c))
        list_remove(&c->flowing);
}

void call_flow(struct call *c)
{
    if (c->answer.join && !join_advance(c))
        return;
    args_flow(c);
    bool paused = answer_flow(c);
    if (!paused && !c->args.paused && !c->answer.join)
        list_remove(&c->flowing);
    else if (list_empty(&c->flowing))
        list_append(&c->router->flowing, &c->flowing);
}

bool call_turns(const struct call *c, bool paused, size_t waits)
{
    const struct router_config *config = &c->router->config;
    return paused ? waits <= config->resume_mark : waits > config->pause_mark;
}

void call_settle(struct call *c)
{
    call_abort(c);
    answer_parks(c, 0);
    args_done(c);
    call_become(c, CALL_ANSWERED);
    struct session *s = TAKE_PTR(c->session);
    stats_end(&c->stat);
    idmap_del(&s->calls, c->req.id);
    list_remove(&c->open);
    list_remove(&c->of_group);
    deadlines_del(&c->router->deadlines, &c->deadline);
    if (c->req.keep)
        object_discard_all(c);
    answer_done(c);
    dispatch_plan_free(TAKE_PTR(c->plan));
    c->group = NULL;
    call_free_if_over(c);
    session_flow(s);
}

// No rank has got it, or each only a part, with which none begins.
static bool is_unsent(const struct call *c)
{
    bool unsent = true;
    for (uint32_t i = 0; i < c->n && c->state != CALL_STREAMING; i++)
        unsent = unsent && c->slots[i].unsent;
    return unsent;
}

void call_fail(struct call *c, const struct failure *f)
{
    bool unsent = is_unsent(c) || (f->unran && c->n == 1); // of several ranks, others may run it
    c->stat.failed = true;
    c->stat.blamed = f->rank;
    call_abort(c); // the caller may have a part of a result: the error ends it
    session_fail(c->session, c->req.id, f, c->req.trace, unsent, c->req.again);
    call_settle(c);
}

void call_refuse(struct call *c, int code, const char *fmt, ...)
{
    char message[1024];
    struct failure f;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    failure_set(&f, code, "%s", message);
    call_fail(c, &f);
}

// A rank that does not read leaves it in its queue: it is taken out again, and does not run there.
static bool withdraw(struct call_slot *slot)
{
    struct member *m = slot->member;
    struct call *c = slot->call;
    if (!record_writer_unsent(m->peer.out, c->id))
        return false;
    c->stat.failed = true;
    stats_end(&c->stat); // the rank has not answered
    (void)record_writer_drop(m->peer.out, c->id, false);
    slot->unsent = true;
    call_slot_ends(slot);
    return true;
}

// Ranks that have it are told, however full their queues are; they answer all the same.
static void tell_ranks(struct call *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct member *m = c->slots[i].member;
        if (!m || !m->peer.out || c->state == CALL_STREAMING || withdraw(&c->slots[i])) // see args_abort()
            continue;
        struct record_header h = {.type = RECORD_CANCEL, .call = c->id, .rank = m->rank};
        record_writer_insist(m->peer.out, &h);
        peer_changed(&m->peer);
    }
}

void call_cancel(struct call *c)
{
    tell_ranks(c);
    call_refuse(c, ERR_CANCELED, "%s() of %s was canceled by its caller%s", c->req.method, c->group->key,
                is_unsent(c) ? " before it was sent to a rank" : "; ranks that had begun may have run it");
}

void call_abandon(struct call *c)
{
    tell_ranks(c);
    c->stat.failed = true;
    call_settle(c);
}

static void name_late_ranks(const struct call *c, struct buf *out)
{
    uint32_t named = 0;
    for (uint32_t i = 0; i < c->n && named < 8; i++)
        if (c->slots[i].member)
            buf_printf(out, "%s%u", named++ ? ", " : " ", c->req.first + i);
    if (c->left > named)
        buf_printf(out, " and %u more", c->left - named);
}

// What it has waited for in vain.
static void explain_lateness(struct call *c, struct buf *out)
{
    bool args_missing = c->state == CALL_STREAMING || (c->args.partial && !c->args.paused && !args_complete(c));
    switch (args_missing ? CALL_STREAMING : c->state) {
    case CALL_STREAMING:
        buf_puts(out, "its arguments have not come in whole");
        break;
    case CALL_WAITING:
        request_explain_wait(&c->req, c->group, out);
        break;
    case CALL_QUEUED:
        tasks_explain(c, out);
        break;
    case CALL_NEW:
    case CALL_BLOCKED:
        buf_puts(out, "an earlier call of the same client has not come in whole");
        break;
    case CALL_RUNNING:
    case CALL_ANSWERED:
        buf_printf(out, "no answer from rank%s", c->left == 1 ? "" : "s");
        name_late_ranks(c, out);
        tell_ranks(c);
        buf_puts(out, is_unsent(c) ? ", which did not take it in; it has not run" : "; it may have run");
        break;
    }
}

void call_timeout(struct call *c)
{
    struct buf why = BUF_INIT(1024);
    int64_t ms = patience_ms(c, c->state);
    explain_lateness(c, &why);
    call_refuse(c, ERR_TIMEOUT, "%s() of %s: not done within %lld ms: %s", c->req.method, c->group->key, (long long)ms,
                buf_str(&why));
    buf_done(&why);
}

struct call_slot *call_slot_of(struct call *c, const struct member *m)
{
    uint32_t i = m->rank - c->req.first;
    return i < c->n && c->slots[i].member == m ? &c->slots[i] : NULL;
}

bool call_slot_ends(struct call_slot *slot)
{
    record_stream_forget(&slot->args);
    list_remove(&slot->pending);
    uint32_t rank = slot->member->rank;
    struct member *m = slot->member;
    m->n_pending--;
    member_lane(m, slot->call->req.lane)->n_pending--;
    if (m->group && !list_empty(&m->group->tasks[slot->call->req.lane]))
        router_look_again(slot->call->router, m->group);
    slot->member = NULL;
    slot->call->left--;
    stats_answer(&slot->call->stat, rank, slot->call->n, slot->call->left);
    return slot->call->session != NULL;
}

void call_lost(struct call_slot *slot, const struct failure *f)
{
    struct call *c = slot->call;
    if (!call_slot_ends(slot))
        call_free_if_over(c);
    else
        call_fail(c, f);
}
