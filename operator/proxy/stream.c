// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/stream.h"

#include "common/wire/safetensors.h"
#include "operator/proxy/deal.h"
#include "operator/proxy/join.h"

#include <string.h>

// Holding, and going on

bool stream_turns(const struct call *c, bool held, size_t waits)
{
    const struct router_config *config = &c->router->config;
    return held ? waits <= config->go_mark : waits > config->hold_mark;
}

// What finds no room is said with a later stream_flow(): without its GO a sender would hold what it has for ever.

static void hold_result(struct call_slot *slot, bool hold)
{
    if (peer_hold(&slot->member->peer, hold, slot->call->id, slot->member->rank))
        slot->held = hold;
}

static size_t result_waiting(const struct call *c, const struct call_slot *slot)
{
    return c->join ? join_waits(c, slot->member->rank) : record_stream_waits(&c->result);
}

void stream_flow(struct call *c)
{
    bool held = false;
    if (c->join && !join_advance(c))
        return;
    args_flow(c);
    for (uint32_t i = 0; i < c->n; i++) {
        struct call_slot *slot = &c->slots[i];
        if (slot->passes && slot->member && stream_turns(c, slot->held, result_waiting(c, slot)))
            hold_result(slot, !slot->held);
        held = held || slot->held;
    }
    if (!held && !c->args.held && !c->join)
        list_remove(&c->flowing);
    else if (list_empty(&c->flowing))
        list_append(&c->router->flowing, &c->flowing);
}

void stream_abort(struct call *c)
{
    bool held = false;
    args_abort(c);
    (void)record_stream_drop(&c->result);
    for (uint32_t i = 0; i < c->n; i++) {
        struct call_slot *slot = &c->slots[i];
        if (slot->held && slot->member)
            hold_result(slot, false);
        held = held || (slot->held && slot->member);
    }
    if (!held)
        list_remove(&c->flowing);
}

// Results

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
        r = first ? record_stream_begin(&c->result, p->out, &h, &part, 1, err)
                  : record_stream_add(&c->result, &part, 1, err);
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
    return c->session && !c->req.quiet && (c->req.single || deal_wants(c->deal, slot->member->rank));
}

static int take_result(struct call_slot *slot, const struct call_body *piece, bool first, bool last, struct err *err)
{
    struct call *c = slot->call;
    if (!c->req.single)
        return join(slot, piece, first, last, err);
    int r = piece->len ? pass(c, slot->member->rank, piece, first, err) : 0;
    if (r == 0 && last)
        record_stream_end(&c->result);
    return r;
}

bool stream_result(struct call_slot *slot, const struct call_body *piece, bool first, bool last)
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
        call_result_ends(slot);
    else if (c->session)
        stream_flow(c);
    return true;
}
