// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call_send.h"

#include "operator/proxy/args.h"
#include "operator/proxy/call_end.h"
#include "operator/proxy/delivery.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/result.h"
#include "operator/proxy/split.h"
#include "operator/proxy/split_stream.h"

#include <string.h>

// A body up to this length is copied for each rank, because this is faster than to share it.
#define COPY_MAX ((size_t)1 << 10)
#define LASTING_MIN ((size_t)2 << 10) // a longer call may go out in several records, with others between them

// All ranks are checked first, so that a call either reaches all of them or none. The queue's own bookkeeping is small.
static int check_room(const struct call *c, uint32_t i, size_t cost, struct err *err)
{
    const struct member *m = c->group->ranks[c->req.first + i].member;
    if (m->n_pending >= c->router->config.member_calls)
        return err_set(
            err, ERR_THROTTLED,
            "rank %u of %s has %zu calls that it has not answered, which is the limit; wait for some of them", m->rank,
            c->group->key, m->n_pending);
    if (cost + 512 > record_queue_room(&m->peer.out->queue))
        return err_set(err, ERR_THROTTLED, "rank %u of %s has no room for %zu bytes more: %zu wait for it to read them",
                       m->rank, c->group->key, cost, m->peer.out->queue.bytes);
    return 0;
}

static void number(struct call *c)
{
    struct router *r = c->router;
    do {
        c->id = ++r->last_id;
    } while (!c->id || idmap_get(&r->running, c->id));
    idmap_add(&r->running, c->id, c);
}

// Queues the call for the next rank, as parts of blobs or as a copy.
static int send_next(struct call *c, const struct record_part *parts, size_t n, const struct call_body *copied,
                     struct err *err)
{
    struct member *m = c->group->ranks[c->req.first + c->n].member;
    struct record_header h = {
        .type = RECORD_CALL, .call = c->id, .rank = m->rank, .dispatch = c->req.dispatch, .execute = c->req.execute};
    if (c->req.quiet || !dispatch_plan_wants(c->plan, m->rank))
        h.flags = RECORD_QUIET;
    if (c->order->lasting > c->lasting)
        h.flags |= RECORD_ORDERED;
    if (c->refs)
        h.flags |= RECORD_REFS;
    if (c->session->code && m->takes_code)
        h.flags |= RECORD_CODE;
    return call_rank_begin(c, m, &h, parts, n, copied, err);
}

static int send_same(struct call *c, const struct call_body *body, uint32_t n, struct err *err)
{
    struct blob *shared = NULL;
    bool copied = c->state == CALL_RUNNING && !body->blob && (n == 1 || body->len <= COPY_MAX) &&
                  call_pays_copies(c, n * body->len);
    size_t cost = body->blob && body->blob->area ? 0 : body->len;
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = check_room(c, i, cost, err);
    if (r < 0)
        return r;
    if (!copied && !(shared = body_keep(body, c->quota)))
        return err_set(err, ERR_LIMIT, "%s(): no room for its arguments", c->req.method);
    const struct record_part part = body_part(body, shared);
    while (c->n < n && r == 0)
        r = send_next(c, &part, 1, copied ? body : NULL, err);
    blob_unref(shared);
    return r;
}

// All ranks get the head, and each gets its piece of the arguments. Nothing is copied.
static int send_pieces(struct call *c, const struct split *s, struct err *err)
{
    const uint32_t *pieces = c->plan ? c->plan->d.piece_of : NULL;
    size_t n_parts = 0;
    int r = 0;
    for (uint32_t i = 0; i < c->req.world && r == 0; i++) {
        const struct split_piece *piece = &s->pieces[pieces ? pieces[i] : i];
        size_t cost = record_parts_cost(&s->head, 1) + record_parts_cost(s->parts + piece->first, piece->n);
        r = check_room(c, i, cost, err);
        n_parts += piece->n + 1;
    }
    if (r == 0 && !call_pays_copies(c, n_parts * sizeof(struct record_part)))
        r = err_set(err, ERR_LIMIT, "%s(): no room for its arguments", c->req.method);
    while (r == 0 && c->n < c->req.world) {
        const struct split_piece *piece = &s->pieces[pieces ? pieces[c->n] : c->n];
        struct record_part *parts = router_parts(c->router, piece->n + 1);
        parts[0] = s->head;
        if (piece->n)
            memcpy(parts + 1, s->parts + piece->first, piece->n * sizeof *parts);
        r = send_next(c, parts, piece->n + 1, NULL, err);
    }
    return r;
}

// The method of the call gets stats of its own once the ranks that have declared it are here.
static void name_stats(struct call *c)
{
    struct stats *s = &c->group->stats;
    if (c->stat.method != &s->other)
        return;
    if (member_method_of(c->group->ranks[c->req.first].member, c->req.role, c->req.method))
        stats_become(&c->stat, stats_add(s, c->req.role, c->req.method));
}

// Other calls may overtake this one, or an earlier one without an answer, on the way to a rank.
static void note_lasting(struct call *c, size_t len)
{
    c->lasting = c->state == CALL_STREAMING || len > LASTING_MIN || c->order->lasting;
    c->order->lasting += c->lasting;
}

// From now on, ranks get the call.
static void set_out(struct call *c, enum call_state state, size_t len)
{
    call_become(c, state);
    number(c);
    note_lasting(c, len);
    c->group->last_any += c->req.execute == RECORD_ANY;
}

static int send_body(struct call *c, const struct call_body *body, struct err *err)
{
    set_out(c, CALL_RUNNING, body->len);
    return send_same(c, body, c->req.single ? 1 : c->req.world, err);
}

// Notes the rows of the batch in the plan, for its results.
static int send_split(struct call *c, const struct split *s, size_t len, struct err *err)
{
    if (c->plan) {
        c->plan->rows = s->rows;
        c->plan->each = s->each;
        c->plan->added = s->added;
    }
    set_out(c, CALL_RUNNING, len);
    return send_pieces(c, s, err);
}

static int send_args(struct call *c, const struct call_body *body, const struct record_call *parts, struct err *err)
{
    struct delivery d;
    if (delivery_is_plain(c, parts))
        return send_body(c, body, err);
    int r = delivery_make(c, body, parts, &d, err);
    c->refs = d.refs;
    if (r == 0 && !d.whole)
        r = send_split(c, &d.split, body->len, err);
    else if (r == 0)
        r = send_body(c, d.made ? &(struct call_body){d.made->data, d.made->len, d.made} : body, err);
    delivery_done(&d);
    return r;
}

void call_send(struct call *c, const struct call_body *body)
{
    struct err err = ERR_INIT;
    struct record_call parts;
    name_stats(c);
    int r = record_call_decode(body->data, body->len, &parts, &err);
    if (r == 0)
        r = dispatch_plan_make(&c->req, c->group, &parts, c->quota, &c->plan, &err);
    if (r == 0)
        r = send_args(c, body, &parts, &err);
    if (r < 0)
        call_fail_err(c, &err);
}

// All ranks get the head of the call, then each rank gets the head of its own document, then rows of the values that
// have arrived.
static int send_split_stream(struct call *c, const struct split_stream *s, const struct call_body *body,
                             const struct record_call *parts, struct err *err)
{
    struct blob *shared = body_keep(body, c->quota);
    int r = 0;
    if (!shared)
        return err_set(err, ERR_LIMIT, "%s(): no room for its arguments", c->req.method);
    size_t at = body_part(body, shared).offset, head = body->len - parts->args_len;
    for (uint32_t i = 0; i < c->req.world && r == 0; i++)
        r = check_room(c, i, head + split_stream_head(s, c, i).len, err);
    while (c->n < c->req.world && r == 0) {
        const struct record_part one[] = {{shared, at, head}, split_stream_head(s, c, c->n)};
        r = send_next(c, one, ARRAY_LEN(one), NULL, err);
    }
    size_t read = head + split_stream_head_len(s);
    const struct call_body rest = {shared->data + at + read, body->len - read, shared};
    if (r == 0)
        r = args_piece(c, &rest, false, err);
    blob_unref(shared);
    return r;
}

static int send_first(struct call *c, const struct call_body *first, const struct record_call *parts, struct err *err)
{
    name_stats(c);
    set_out(c, CALL_STREAMING, first->len);
    const struct split_stream *split = args_split(c);
    return split ? send_split_stream(c, split, first, parts, err)
                 : send_same(c, first, c->req.single ? 1 : c->req.world, err);
}

bool call_send_first(struct call *c, const struct call_body *first)
{
    struct err err = ERR_INIT;
    struct record_call parts;
    if (record_call_decode(first->data, first->len, &parts, &err) == 0 && send_first(c, first, &parts, &err) == 0) {
        result_flow(c);
        return true;
    }
    call_fail_err(c, &err);
    return false;
}

static void pass_parked(struct call *c)
{
    struct err err = ERR_INIT;
    if (args_pass_parked(c, &err) < 0)
        call_fail_err(c, &err);
    else
        result_flow(c);
}

void call_send_kept(struct call *c)
{
    bool parked = args_parked(c);
    const struct call_body body = args_take(c);
    if (!parked)
        call_send(c, &body);
    else if (call_send_first(c, &body))
        pass_parked(c);
    blob_unref(body.blob);
}
