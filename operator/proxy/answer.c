// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/call.h"
#include "operator/proxy/collect.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/join.h"
#include "operator/proxy/object.h"

#include "common/wire/safetensors.h"

#include <string.h>

void answer_parks(struct call *c, size_t bytes)
{
    c->session->parked += bytes - c->answer.parked;
    c->answer.parked = bytes;
}

struct record_part answer_part(const struct call *c, const struct call_slot *slot)
{
    return (struct record_part){slot->blob ? slot->blob : c->answer.gathered, slot->offset, slot->len};
}

// What waits for a caller counts as the caller's: another one's results must not fill up the worker that made them.
static bool keep_result(struct call_slot *slot, const struct call_body *body)
{
    struct call *c = slot->call;
    // What is going to be read must not change meanwhile, as what lies in a worker's memory may.
    bool shaky = body->blob && body->blob->area && ((c->plan && c->plan->d.join) || c->req.keep);
    slot->len = body->len;
    answer_parks(c, c->answer.parked + body->len);
    if (body->blob && !shaky) {
        if (!blob_recharge(body->blob, c->quota))
            return false;
        slot->blob = blob_ref(body->blob);
        slot->offset = (size_t)(body->data - body->blob->data);
        return true;
    }
    if (!c->answer.gathered) {
        slot->offset = 0;
        c->answer.gathered = blob_copy(body->data, body->len, c->quota);
        return c->answer.gathered != NULL;
    }
    if (!blob_reserve(c->answer.gathered, body->len))
        return false;
    slot->offset = c->answer.gathered->len;
    if (body->len)
        memcpy(c->answer.gathered->data + slot->offset, body->data, body->len);
    c->answer.gathered->len += body->len;
    return true;
}

static void refuse_results(struct call *c)
{
    call_refuse(c, ERR_LIMIT, "%s() of %s ran, but its results together are more than may wait here", c->req.method,
                c->group->key);
}

void answer_send(struct call *c, const struct record_part *parts, size_t n)
{
    struct record_header h = {.type = RECORD_RESULT, .call = c->req.id, .rank = RECORD_GROUP};
    const struct record_writer *out = c->session->peer.out;
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    size_t cost = record_parts_cost(parts, n);
    if (cost > RECORD_BODY_MAX && out && cost > out->max_bytes / 2) { // its other calls have no part in it
        refuse_results(c);
        return;
    }
    c->stat.bytes_out += len;
    session_send(c->session, &h, parts, n);
    c->router->n_results++;
    call_settle(c);
}

static void send_single(struct call *c, uint32_t rank, const struct call_body *body)
{
    struct record_header h = {.type = RECORD_RESULT, .call = c->req.id, .rank = rank};
    if (body->blob && !blob_recharge(body->blob, c->quota)) {
        refuse_results(c);
        return;
    }
    c->stat.bytes_out = body->len;
    if (body->blob) {
        struct record_part part = {body->blob, (size_t)(body->data - body->blob->data), body->len};
        session_send(c->session, &h, &part, 1);
    } else if (body->len) {
        session_copy(c->session, &h, body->data, body->len);
    } else {
        session_copy(c->session, &h, "null", 4);
    }
    c->router->n_results++;
    call_settle(c);
}

void answer_send_copy(struct call *c, const struct record_header *h, const char *body, size_t len)
{
    session_copy(c->session, h, body, len);
    c->router->n_results++;
    call_settle(c);
}

static void send_end(struct call *c)
{
    struct record_header h = {.type = RECORD_RESULT, .call = c->req.id, .rank = RECORD_GROUP};
    answer_send_copy(c, &h, "null", 4);
}

static void collect_more(struct call *c)
{
    if (c->answer.join)
        (void)join_advance(c);
    else if (c->left == 0)
        collect(c);
}

void answer_result(struct call_slot *slot, const struct call_body *body)
{
    struct call *c = slot->call;
    struct member *m = slot->member;
    uint32_t rank = m->rank;
    bool kept = c->req.keep;
    if (!call_slot_ends(slot)) {
        if (kept)
            object_discard(m, body->data, body->len, c->req.pin);
        call_free_if_over(c);
    } else if (c->req.quiet) {
        if (c->left == 0)
            send_end(c);
    } else if (c->req.single && kept) {
        object_single(c, m, body);
    } else if (c->req.single) {
        send_single(c, rank, body);
    } else if (c->left == 0 && !kept && collect_only(c, body)) {
        ; // it is answered
    } else if (dispatch_plan_wants(c->plan, rank) && !keep_result(slot, body)) {
        refuse_results(c);
    } else if (c->left == 0 && kept) {
        object_collect(c);
    } else {
        collect_more(c);
    }
}

void answer_streamed(struct call *c)
{
    record_stream_end(&c->answer.stream);
    record_stream_forget(&c->answer.stream);
    peer_changed(&c->session->peer);
    c->router->n_results++;
    call_settle(c);
}

static void result_ends(struct call_slot *slot)
{
    struct call *c = slot->call;
    bool waits = call_slot_ends(slot);
    if (!waits) {
        call_free_if_over(c);
    } else if (c->req.quiet) {
        if (c->left == 0)
            send_end(c);
    } else if (c->req.single) {
        answer_streamed(c);
    } else {
        collect_more(c);
    }
}

void answer_too_long(struct call_slot *slot, bool last)
{
    struct call *c = slot->call;
    slot->passes = true;
    if (c->session)
        call_refuse(c, ERR_LIMIT, "%s() of %s ran, but the answer of rank %u is longer than what can be collected here",
                    c->req.method, c->group->key, slot->member->rank);
    if (last)
        result_ends(slot);
}

void answer_error(struct call_slot *slot, const struct call_body *body)
{
    struct call *c = slot->call;
    const struct member *m = slot->member;
    if (!call_slot_ends(slot)) {
        call_free_if_over(c);
        return;
    }
    struct failure said, f;
    failure_decode(&said, body->data, body->len);
    failure_set(&f, ERR_INTERNAL, "rank %u: %s", m->rank, said.message);
    memcpy(f.code, said.code, sizeof f.code);
    f.rank = m->rank;
    f.pod = m->pod;
    f.node = m->node;
    f.unran = said.unran;
    call_fail(c, &f);
}

// Results in pieces

static int pass(struct call *c, uint32_t rank, const struct call_body *piece, bool first, struct err *err)
{
    struct record_header h = {.type = RECORD_RESULT, .call = c->req.id, .rank = rank};
    struct blob *kept = body_keep_piece(piece, c->quota);
    if (!kept)
        return err_set(err, ERR_LIMIT, "%s() of %s ran, but no more of its result may wait here", c->req.method,
                       c->group->key);
    c->stat.bytes_out += piece->len;
    const struct record_part part = body_part(piece, kept);
    struct peer *p = &c->session->peer;
    int r = 0;
    if (p->out && !p->close_code)
        r = first ? record_stream_begin(&c->answer.stream, p->out, &h, &part, 1, err)
                  : record_stream_add(&c->answer.stream, &part, 1, err);
    peer_changed(p);
    blob_unref(kept);
    return r;
}

static int join_piece(struct call_slot *slot, const struct call_body *piece, bool copy, bool last, struct err *err)
{
    const struct call *c = slot->call;
    struct blob *kept = copy ? body_copy_piece(piece, c->quota) : body_keep_piece(piece, c->quota);
    if (!kept)
        return err_set(err, ERR_LIMIT, "%s() of %s ran, but its results together are more than may wait here",
                       c->req.method, c->group->key);
    const struct record_part part = copy ? (struct record_part){kept, 0, piece->len} : body_part(piece, kept);
    int r = join_add(slot, &part, last, err);
    blob_unref(kept);
    return r;
}

static int join(struct call_slot *slot, const struct call_body *piece, bool first, bool last, struct err *err)
{
    struct call_body head = *piece, rest = *piece;
    struct err ignored = ERR_INIT;
    size_t len;
    if (!first || !piece->blob || !piece->blob->area)
        return join_piece(slot, piece, false, last, err);
    // Of what lies in shared memory the head is copied, and nothing else.
    if (safetensors_head_len(piece->data, &len, &ignored) == 0 && len < piece->len)
        head.len = len;
    rest.data += head.len;
    rest.len -= head.len;
    int r = join_piece(slot, &head, true, last && !rest.len, err);
    return r < 0 || !rest.len ? r : join_piece(slot, &rest, false, last, err);
}

// Whether the caller is to get it.
static bool wants(const struct call_slot *slot)
{
    const struct call *c = slot->call;
    return c->session && !c->req.quiet && (c->req.single || dispatch_plan_wants(c->plan, slot->member->rank));
}

static int take_result(struct call_slot *slot, const struct call_body *piece, bool first, bool last, struct err *err)
{
    struct call *c = slot->call;
    if (!c->req.single)
        return join(slot, piece, first, last, err);
    int r = piece->len ? pass(c, slot->member->rank, piece, first, err) : 0;
    if (r == 0 && last)
        record_stream_end(&c->answer.stream);
    return r;
}

bool answer_piece(struct call_slot *slot, const struct call_body *piece, bool first, bool last)
{
    struct call *c = slot->call;
    struct err err = ERR_INIT;
    struct failure f;
    bool passes = c->req.single && c->session && !c->session->whole;
    slot->member->peer.want = 0;
    if (first && c->req.keep) // an answer that is no result is short
        return false;
    if (first && wants(slot) && !passes && !join_takes(slot, piece, &slot->member->peer.want))
        return false;
    slot->passes = true;
    if (wants(slot) && take_result(slot, piece, first, last, &err) < 0) {
        failure_from(&f, &err);
        call_fail(c, &f);
    }
    if (last)
        result_ends(slot);
    else if (c->session)
        call_flow(c);
    return true;
}

// Holding, and going on

// What finds no room is said with a later call_flow(): without its GO a sender would hold what it has for ever.

static void pause_result(struct call_slot *slot, bool pause)
{
    if (peer_pause(&slot->member->peer, pause, slot->call->id, slot->member->rank))
        slot->paused = pause;
}

static size_t result_waiting(const struct call *c, const struct call_slot *slot)
{
    return c->answer.join ? join_waits(c, slot->member->rank) : record_stream_waits(&c->answer.stream);
}

bool answer_flow(struct call *c)
{
    bool paused = false;
    for (uint32_t i = 0; i < c->n; i++) {
        struct call_slot *slot = &c->slots[i];
        if (slot->passes && slot->member && call_turns(c, slot->paused, result_waiting(c, slot)))
            pause_result(slot, !slot->paused);
        paused = paused || slot->paused;
    }
    return paused;
}

bool answer_abort(struct call *c)
{
    bool paused = false;
    (void)record_stream_drop(&c->answer.stream);
    for (uint32_t i = 0; i < c->n; i++) {
        struct call_slot *slot = &c->slots[i];
        if (slot->paused && slot->member)
            pause_result(slot, false);
        paused = paused || (slot->paused && slot->member);
    }
    return paused;
}

void answer_done(struct call *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        blob_unref(TAKE_PTR(c->slots[i].blob));
    blob_unref(TAKE_PTR(c->answer.gathered));
    join_free(c);
}
