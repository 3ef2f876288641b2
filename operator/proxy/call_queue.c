// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call_queue.h"

#include "operator/proxy/args.h"
#include "operator/proxy/call_end.h"
#include "operator/proxy/call_send.h"
#include "operator/proxy/delivery.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/wait_queue.h"

static void queue_task(struct call *c)
{
    call_become(c, CALL_QUEUED);
    list_append(&c->group->tasks[c->req.lane], &c->link);
}

// The call waits with all of its arguments, or with the first piece. False: there is no room for them, and it has
// failed.
static bool call_wait(struct call *c, const struct call_body *body, bool all, bool queued)
{
    if (!(all ? args_keep(c, body) : args_park(c, body))) {
        call_refuse(c, ERR_LIMIT, "%s() of %s cannot wait: too many calls of this client wait already", c->req.method,
                    c->group->key);
        return false;
    }
    args_wait(c);
    if (queued) {
        queue_task(c);
        return true;
    }
    call_become(c, CALL_WAITING);
    c->queue = wait_queue_add(c->group, c->session, &c->link);
    return true;
}

static void refuse_waiting(struct call *c)
{
    _cleanup_(buf_done) struct buf why = BUF_INIT(1024);
    request_explain_wait(&c->req, c->group, &why);
    call_refuse(c, ERR_UNAVAILABLE, "%s() was not sent: %s", c->req.method, buf_str(&why));
}

// The group would take the call now, if its arguments were here and no other call were before it.
static bool can_go(const struct call *c)
{
    struct request q = c->req;
    struct err ignored = ERR_INIT;
    return request_resolve(&q, c->group, NULL, false, &ignored) != VERDICT_WAIT;
}

// The call only waits for an earlier call of its client, whose arguments are being prepared or have not arrived.
static bool is_held_up(const struct call *c)
{
    const struct list *first = wait_queue_first(c->group, c->session);
    return first && can_go(CONTAINER_OF(first, struct call, link)) && can_go(c);
}

static void take_plan(struct call *c, struct call_start *start)
{
    dispatch_plan_free(c->plan);
    c->plan = TAKE_PTR(start->plan);
    args_split_by(c, TAKE_PTR(start->split));
}

// `all`: the body is complete.
static void begin(struct call *c, const struct call_body *body, bool all, int verdict, bool prepare,
                  const struct err *err)
{
    if (verdict < 0) {
        call_fail_err(c, err);
    } else if (verdict == VERDICT_WAIT && c->req.refuse && !is_held_up(c)) {
        refuse_waiting(c);
    } else if (verdict != VERDICT_GO) {
        (void)call_wait(c, body, all, verdict == VERDICT_QUEUE);
    } else if (prepare) {
        if (call_wait(c, body, all, false))
            delivery_prepare(c, !all);
    } else if (all) {
        call_send(c, body);
    } else {
        (void)call_send_first(c, body);
    }
}

void call_submit(struct call *c, const struct call_body *body)
{
    struct err err = ERR_INIT;
    int r = request_resolve(&c->req, c->group, c->session, false, &err);
    begin(c, body, true, r, r == VERDICT_GO && delivery_is_long(c, body), &err);
}

void call_stream(struct call *c, const struct call_body *first, struct call_start *start)
{
    take_plan(c, start);
    begin(c, first, false, start->verdict, start->prepare, &start->err);
}

// Returns true if enough of the arguments has arrived. If not, the client is told to send more.
static bool suffices(struct call *c, struct call_start *ret)
{
    if (!args_parked(c))
        return true;
    if (delivery_awaited(c))
        return false;
    for (bool planned = false; !planned;) {
        size_t want;
        int r = args_fetch(c, &ret->err);
        if (r < 0)
            ret->verdict = r;
        if (r < 0 || !args_parked(c)) // an error, or all of them are here
            return true;
        if (r == 0)
            return false;
        const struct call_body here = args_body(c);
        planned = call_start_plan(ret, c->session, c->group, c, &c->req, &here, &want);
        if (!planned && !want)
            want = SIZE_MAX;
        args_want(c, want);
        if (ret->prepare) {
            args_pause(c, true);
            delivery_prepare(c, true);
            return false;
        }
        if (!planned && want == here.len) { // anything more will do
            args_pause(c, false);
            return false;
        }
    }
    return true;
}

// False: the call still waits until its arguments are ready.
static bool is_ready(struct call *c)
{
    if (delivery_awaited(c))
        return false;
    const struct call_body body = args_body(c);
    if (args_parked(c) || !delivery_is_long(c, &body))
        return true;
    delivery_prepare(c, false);
    return !delivery_awaited(c);
}

// Looks again at a call that waits. Afterwards it may still wait.
static void call_resubmit(struct call *c)
{
    struct call_start start = {.err = ERR_INIT};
    bool queued = c->state == CALL_QUEUED;
    if (session_ended(c->session)) {
        call_abandon(c);
        return;
    }
    start.verdict = request_resolve(&c->req, c->group, NULL, queued, &start.err);
    // The call waited for another call, and the group is not ready any more.
    if (start.verdict == VERDICT_WAIT && c->req.refuse) {
        refuse_waiting(c);
        return;
    }
    if (start.verdict == VERDICT_WAIT)
        args_pause(c, true);
    if (start.verdict == VERDICT_WAIT || (start.verdict == VERDICT_QUEUE && queued))
        return;
    if (start.verdict >= 0 && !suffices(c, &start))
        return;
    if (start.verdict < 0) {
        call_fail_err(c, &start.err);
        return;
    }
    if (start.verdict == VERDICT_GO && !is_ready(c)) {
        call_start_forget(&start);
        return;
    }
    take_plan(c, &start);
    if (start.verdict == VERDICT_QUEUE) {
        args_pause(c, true);
        queue_task(c);
        return;
    }
    call_send_kept(c);
}

// Sends calls until one has to wait. False: the work is used up.
static bool release_queue(const struct group *g, const struct session *s, unsigned *work)
{
    for (const struct list *first; (first = wait_queue_first(g, s));) {
        struct call *c = CONTAINER_OF(first, struct call, link);
        unsigned takes = call_work(c);
        if (*work == 0)
            return false;
        call_resubmit(c);
        if (wait_queue_first(g, s) == first)
            return true;
        *work -= MIN(*work, takes);
    }
    return true;
}

static bool release_waiting(const struct group *g, unsigned *work)
{
    LIST_FOREACH(l, &g->waiting)
        if (!release_queue(g, CONTAINER_OF(l, struct wait_queue, of_group)->session, work))
            return false;
    return true;
}

static bool release_tasks(struct group *g, unsigned *work)
{
    for (size_t i = 0; i <= MEMBER_LANES_MAX; i++)
        for (const struct list *l = NULL; !list_empty(&g->tasks[i]) && l != g->tasks[i].next; --*work) {
            if (*work == 0)
                return false;
            l = g->tasks[i].next;
            // The call is still the first: no rank has a slot.
            call_resubmit(CONTAINER_OF(g->tasks[i].next, struct call, link));
        }
    return true;
}

bool calls_release(struct group *g, unsigned *work)
{
    return release_waiting(g, work) && release_tasks(g, work);
}
