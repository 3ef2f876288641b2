// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call.h"

#include "operator/proxy/ranking.h"
#include "operator/proxy/tenant.h"
#include "operator/proxy/wait_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS_PER_UNIT = 16, // to send a call to one more rank is much less work than to read one
    SHORT_BODY = 1024,   // copies of longer bodies pause the client as other arguments do
};

void call_set_charged(struct call *c, size_t charged)
{
    size_t copies = c->copies - MIN(c->copies, (size_t)c->n_ranks * SHORT_BODY);
    size_t bookkeeping = charged - MIN(charged, copies);
    c->order->bookkeeping += bookkeeping - c->bookkeeping;
    c->bookkeeping = bookkeeping;
    c->charged = charged;
}

struct call *call_new(struct session *s, const struct request *q, struct group *g, size_t copied)
{
    uint32_t n = request_ranks(q);
    size_t size = sizeof(struct call) + n * sizeof(struct call_rank), charged = size + n * record_item_cost + copied;
    if (!quota_charge(s->quota, charged))
        return NULL;
    struct call *c = n == 1 ? free_list_take(&s->router->calls, size) : xmalloc(size);
    memset(c, 0, offsetof(struct call, req));
    c->req = *q;
    c->router = s->router;
    c->session = s;
    c->quota = quota_ref(s->quota);
    c->tenant = tenant_ref(s->tenant);
    c->tenant->n_calls++;
    c->order = s->order;
    c->group = g;
    c->n_ranks = n;
    c->copies = copied;
    call_set_charged(c, charged);
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
        tenant_deadline(c->tenant, &c->deadline, c->begun_ms + q->timeout_ms);
    }
    return c;
}

unsigned call_work(const struct call *c)
{
    return 1 + c->n_ranks / RANKS_PER_UNIT;
}

bool call_pays_copies(struct call *c, size_t bytes)
{
    size_t more = bytes - MIN(bytes, c->copies);
    if (more && !quota_charge(c->quota, more))
        return false;
    c->copies += more;
    call_set_charged(c, c->charged + more);
    return true;
}

// A call waits for its group or a slot for a bounded time, however late its client's deadline is. 0 = no deadline.
static int64_t patience_in(const struct call *c, enum call_state state)
{
    const struct router_config *config = &c->router->config;
    int64_t given = c->req.timeout_ms;
    if (state != CALL_WAITING && state != CALL_QUEUED)
        return given;
    if (given)
        return MIN(given, config->task_wait_ms);
    return state == CALL_QUEUED ? config->task_wait_ms : config->ready_wait_ms;
}

int64_t call_patience_ms(const struct call *c)
{
    return patience_in(c, c->state);
}

static void set_patience(struct call *c, enum call_state next)
{
    struct router *r = c->router;
    int64_t ms = patience_in(c, next), given = c->req.timeout_ms;
    if (given && given <= r->config.task_wait_ms) // the deadline stays as it is
        return;
    if (ms)
        tenant_deadline(c->tenant, &c->deadline, (given ? c->begun_ms : clock_mono_ms(r->config.clock)) + ms);
    else
        tenant_no_deadline(c->tenant, &c->deadline);
}

#define TO(state) (1u << CALL_##state)

// The arrows of the picture in docs/architecture.md. tests/docs/check_docs.py compares both. Each state but the last
// also leads to ANSWERED.
__attribute__((unused)) static bool may_follow(enum call_state now, enum call_state next)
{
    static const unsigned arrows[] = {
        [CALL_NEW] = TO(BLOCKED) | TO(WAITING) | TO(QUEUED) | TO(STREAMING) | TO(RUNNING),
        [CALL_BLOCKED] = TO(WAITING) | TO(QUEUED) | TO(RUNNING), // all of the call is here, so it never streams
        [CALL_WAITING] = TO(QUEUED) | TO(STREAMING) | TO(RUNNING),
        [CALL_QUEUED] = TO(STREAMING) | TO(RUNNING),
        [CALL_STREAMING] = TO(RUNNING),
        [CALL_RUNNING] = 0,
        [CALL_ANSWERED] = 0,
    };
    return next == CALL_ANSWERED ? now != CALL_ANSWERED : arrows[now] >> next & 1;
}

void call_become(struct call *c, enum call_state next)
{
    assert(may_follow(c->state, next));
    if (c->queue)
        wait_queue_leave(TAKE_PTR(c->queue), &c->link);
    list_remove(&c->link);
    set_patience(c, next);
    c->session->n_streams += next == CALL_STREAMING;
    c->session->n_streams -= c->state == CALL_STREAMING;
    c->state = next;
}

bool call_answered(const struct call *c)
{
    return c->state == CALL_ANSWERED;
}

void call_free_if_over(struct call *c)
{
    if (!call_answered(c) || c->left)
        return;
    if (c->id)
        idmap_del(&c->router->running, c->id);
    list_remove(&c->flowing);
    c->router->n_calls--;
    c->order->lasting -= c->lasting;
    c->order->bookkeeping -= c->bookkeeping;
    session_order_unref(c->order);
    quota_refund(c->quota, c->charged);
    quota_unref(c->quota);
    c->tenant->n_calls--;
    tenant_unref(c->tenant);
    if (c->n_ranks == 1)
        free_list_give(&c->router->calls, c);
    else
        free(c);
}

bool call_flow_changes(const struct call *c, bool paused, size_t waits)
{
    const struct router_config *config = &c->router->config;
    return paused ? waits <= config->resume_mark : waits > config->pause_mark;
}

// The ranks of a call, in the order of their lives

int call_rank_begin(struct call *c, struct member *m, const struct record_header *h, const struct record_part *parts,
                    size_t n, const struct call_body *copied, struct err *err)
{
    struct call_rank *rank = &c->ranks[c->n];
    struct record_queue *queue = &m->peer.out->queue;
    *rank = (struct call_rank){.call = c, .member = m};
    int r = c->state == CALL_STREAMING ? record_stream_begin(&rank->sending, queue, h, parts, n, err)
            : copied                   ? record_stream_copy(&rank->sending, queue, h, copied->data, copied->len, err)
                                       : record_stream_push(&rank->sending, queue, h, parts, n, err);
    if (r < 0)
        return r;
    c->n++;
    list_append(&m->pending, &rank->pending);
    m->n_pending++;
    member_lane(m, c->req.lane)->n_pending++;
    ranking_changed(c->group->ranking, m);
    c->left++;
    peer_changed(&m->peer);
    return 0;
}

struct call_rank *call_rank_of(struct call *c, const struct member *m)
{
    uint32_t i = m->rank - c->req.first;
    return i < c->n && c->ranks[i].member == m ? &c->ranks[i] : NULL;
}

int call_rank_send(struct call_rank *rank, const struct record_part *part, struct err *err)
{
    const struct call *c = rank->call;
    struct member *m = rank->member;
    if (!m)
        return 0;
    if (!blob_pays_beside(part->blob, c->quota, sizeof *part)) // each rank's queue keeps a part until the rank reads it
        return err_set(err, ERR_LIMIT, "%s(): no room for more of its arguments", c->req.method);
    if (record_stream_add(&rank->sending, part, 1, err) < 0)
        return err_set(err, ERR_THROTTLED,
                       "%s(): rank %u of %s has no room for more of its arguments: %zu bytes wait for it to read them",
                       c->req.method, m->rank, c->group->key, rank->sending.queue->bytes);
    peer_changed(&m->peer);
    return 0;
}

void call_rank_send_end(struct call_rank *rank)
{
    record_stream_end(&rank->sending);
    if (rank->member)
        peer_changed(&rank->member->peer);
}

size_t call_rank_waits(const struct call_rank *rank)
{
    return record_stream_waits(&rank->sending);
}

bool call_rank_has_all(const struct call_rank *rank)
{
    return !rank->sending.item || rank->sending.whole;
}

void call_rank_note_unsent(struct call_rank *rank)
{
    rank->unsent = rank->unsent || record_stream_withdraw(&rank->sending);
}

bool call_rank_withdraw(struct call_rank *rank)
{
    struct call *c = rank->call;
    if (!record_stream_withdraw(&rank->sending))
        return false;
    c->stat.failed = true;
    stats_end(&c->stat); // the rank has not answered
    rank->unsent = true;
    call_rank_ends(rank);
    return true;
}

// The rank does not answer such a call. Without this record, the rank would hold up everything that is ordered behind
// the call.
void call_rank_drop(struct call_rank *rank)
{
    struct member *m = rank->member;
    if (!m || !rank->sending.item)
        return;
    if (record_stream_drop(&rank->sending) && m->peer.out && !m->peer.close_code) {
        record_writer_insist(m->peer.out,
                             &(struct record_header){.type = RECORD_CANCEL, .call = rank->call->id, .rank = m->rank});
        peer_changed(&m->peer);
    }
    call_rank_ends(rank);
}

bool call_rank_ends(struct call_rank *rank)
{
    record_stream_forget(&rank->sending);
    list_remove(&rank->pending);
    uint32_t number = rank->member->rank;
    struct member *m = rank->member;
    m->n_pending--;
    member_lane(m, rank->call->req.lane)->n_pending--;
    if (m->group)
        ranking_changed(m->group->ranking, m);
    if (m->group && !list_empty(&m->group->tasks[rank->call->req.lane]))
        tenant_look_again(rank->call->tenant, m->group);
    rank->member = NULL;
    rank->call->left--;
    stats_answer(&rank->call->stat, number, rank->call->n, rank->call->left);
    return !call_answered(rank->call);
}
