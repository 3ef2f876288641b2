// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call_end.h"

#include "operator/proxy/answer.h"
#include "operator/proxy/args.h"
#include "operator/proxy/delivery.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/join.h"
#include "operator/proxy/remote_object.h"
#include "operator/proxy/task.h"
#include "operator/proxy/tenant.h"

#include <stdarg.h>
#include <stdio.h>

// Ends bodies that are not complete, and tells peers that pause to go on.
static void call_abort(struct call *c)
{
    args_abort(c);
    if (!answer_abort(c))
        list_remove(&c->flowing);
}

void call_settle(struct call *c)
{
    call_abort(c);
    answer_parks(c, 0);
    args_done(c);
    delivery_forget(c);
    if (c->frees)
        object_free_ends(c);
    call_become(c, CALL_ANSWERED);
    struct session *s = TAKE_PTR(c->session);
    stats_end(&c->stat);
    idmap_del(&s->calls, c->req.id);
    list_remove(&c->open);
    list_remove(&c->of_group);
    tenant_no_deadline(c->tenant, &c->deadline);
    if (c->req.keep)
        object_discard_all(c);
    join_free(c);
    answer_done(c);
    dispatch_plan_free(TAKE_PTR(c->plan));
    c->group = NULL;
    call_free_if_over(c);
    session_flow(s);
}

// No rank has got the call, or each has only a part of it, and no rank begins with a part.
static bool is_unsent(const struct call *c)
{
    bool unsent = true;
    for (uint32_t i = 0; i < c->n && c->state != CALL_STREAMING; i++)
        unsent = unsent && c->ranks[i].unsent;
    return unsent;
}

void call_fail(struct call *c, const struct call_failure *f)
{
    bool unsent = is_unsent(c) || (f->unran && c->n == 1); // other ranks may run it
    c->stat.failed = true;
    c->stat.error_rank = f->rank;
    call_abort(c); // the client may have a part of a result: the error ends it
    session_fail(c->session, c->req.id, f, c->req.trace, unsent, c->req.again);
    call_settle(c);
}

void call_fail_err(struct call *c, const struct err *err)
{
    struct call_failure f;
    call_failure_from(&f, err);
    call_fail(c, &f);
}

void call_refuse(struct call *c, int code, const char *fmt, ...)
{
    char message[1024];
    struct call_failure f;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    call_failure_set(&f, code, "%s", message);
    call_fail(c, &f);
}

// Tells ranks that have the call, even if their queues are full. They still answer. If a rank has not read the call
// yet, it is taken out of the queue, and the rank does not run it.
static void tell_ranks(struct call *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct member *m = c->ranks[i].member;
        // For CALL_STREAMING see args_abort().
        if (!m || !m->peer.out || c->state == CALL_STREAMING || call_rank_withdraw(&c->ranks[i]))
            continue;
        struct record_header h = {.type = RECORD_CANCEL, .call = c->id, .rank = m->rank};
        record_writer_insist(m->peer.out, &h);
        peer_changed(&m->peer);
    }
}

void call_cancel(struct call *c)
{
    tell_ranks(c);
    call_refuse(c, ERR_CANCELED, "%s() of %s was canceled by its client%s", c->req.method, c->group->key,
                is_unsent(c) ? " before it was sent to a rank" : "; ranks that had begun may have run it");
}

void call_abandon(struct call *c)
{
    tell_ranks(c);
    c->stat.failed = true;
    call_settle(c);
}

void call_list_late(const struct call *c, struct call_failure_late *ret)
{
    for (uint32_t i = 0; i < c->n && ret->n < CALL_FAILURE_LATE_MAX; i++)
        if (c->ranks[i].member)
            ret->ranks[ret->n++] = c->req.first + i;
}

static void name_late_ranks(const struct call *c, struct call_failure_late *late, struct buf *out)
{
    call_list_late(c, late);
    for (uint32_t i = 0; i < late->n; i++)
        buf_printf(out, "%s%u", i ? ", " : " ", late->ranks[i]);
    if (c->left > late->n)
        buf_printf(out, " and %u more", c->left - late->n);
}

// Explains what the call has waited for in vain.
static void explain_lateness(struct call *c, struct call_failure_late *late, struct buf *out)
{
    if (args_missing(c)) {
        buf_puts(out, "its arguments have not arrived completely");
        return;
    }
    switch (c->state) {
    case CALL_WAITING:
        if (delivery_awaited(c))
            buf_puts(out, "its arguments are long, and are still being split for its ranks");
        else
            request_explain_wait(&c->req, c->group, out);
        break;
    case CALL_QUEUED:
        task_explain(c->group, c->req.lane, out);
        break;
    case CALL_NEW:
    case CALL_BLOCKED:
        buf_puts(out, "an earlier call of the same client has not arrived completely");
        break;
    case CALL_STREAMING: // its arguments are missing, see above
    case CALL_RUNNING:
    case CALL_ANSWERED:
        if (!c->left) {
            buf_puts(out, "all ranks have answered, and their results are long, and are still being joined");
            break;
        }
        buf_printf(out, "no answer from rank%s", c->left == 1 ? "" : "s");
        name_late_ranks(c, late, out);
        tell_ranks(c);
        buf_puts(out, is_unsent(c) ? ", which did not receive it; it has not run" : "; it may have run");
        break;
    }
}

void call_timeout(struct call *c)
{
    _cleanup_(buf_done) struct buf why = BUF_INIT(1024);
    struct call_failure_late late = {.n = 0};
    struct call_failure f;
    int64_t ms = call_patience_ms(c);
    explain_lateness(c, &late, &why);
    call_failure_set(&f, ERR_TIMEOUT, "%s() of %s: not done within %lld ms: %s", c->req.method, c->group->key,
                     (long long)ms, buf_str(&why));
    f.late = late;
    call_fail(c, &f);
}

void call_lost(struct call_rank *rank, const struct call_failure *f)
{
    struct call *c = rank->call;
    if (!call_rank_ends(rank))
        call_free_if_over(c);
    else
        call_fail(c, f);
}
