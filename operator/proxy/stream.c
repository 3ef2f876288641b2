// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/stream.h"

#include "common/wire/safetensors.h"
#include "operator/proxy/cut.h"
#include "operator/proxy/deal.h"
#include "operator/proxy/join.h"

#include <string.h>

#define PIECE_MIN ((size_t)256) // what a piece is charged at least: it costs more than its bytes

// What is read must not change meanwhile, as what lies in shared memory may.
static struct blob *copy_piece(const struct call *c, const struct call_body *piece)
{
    struct blob *b = blob_new(MAX(piece->len, PIECE_MIN), c->quota);
    if (!b)
        return NULL;
    memcpy(b->data, piece->data, piece->len);
    b->len = piece->len;
    return b;
}

// A piece to be shared by queues.
static struct blob *keep_piece(const struct call *c, const struct call_body *piece)
{
    if (piece->blob)
        return blob_recharge(piece->blob, c->quota) ? blob_ref(piece->blob) : NULL;
    return copy_piece(c, piece);
}

static struct record_part part_of(struct blob *kept, const struct call_body *piece)
{
    return (struct record_part){kept, piece->blob ? (size_t)(piece->data - piece->blob->data) : 0, piece->len};
}

// Holding, and going on

// False: there is no room in its queue now.
static bool tell(struct peer *p, enum record_type type, uint32_t id, uint32_t rank)
{
    const struct record_header h = {.type = (uint8_t)type, .call = id, .rank = rank};
    struct err err = ERR_INIT;
    if (!p->out || p->close_code) // nobody is left to tell
        return true;
    if (record_writer_copy(p->out, &h, NULL, 0, &err) < 0)
        return false;
    peer_changed(p);
    return true;
}

// Whether what is held (or not) has to change.
static bool turns(const struct call *c, bool held, size_t waits)
{
    const struct router_config *config = &c->router->config;
    return held ? waits <= config->go_mark : waits > config->hold_mark;
}

// What finds no room is said with a later stream_flow(): without its GO a sender would hold what it has for ever.

static void hold_args(struct call *c, bool hold)
{
    if (tell(&c->session->peer, hold ? RECORD_HOLD : RECORD_GO, c->req.id, RECORD_GROUP))
        c->args_held = hold;
}

static void hold_result(struct call_slot *slot, bool hold)
{
    if (tell(&slot->member->peer, hold ? RECORD_HOLD : RECORD_GO, slot->call->id, slot->member->rank))
        slot->held = hold;
}

static size_t args_waiting(const struct call *c)
{
    size_t most = 0;
    for (uint32_t i = 0; i < c->n; i++)
        most = MAX(most, record_stream_waits(&c->slots[i].args));
    return most;
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
    if (c->state == CALL_STREAMING && turns(c, c->args_held, args_waiting(c)))
        hold_args(c, !c->args_held);
    for (uint32_t i = 0; i < c->n; i++) {
        struct call_slot *slot = &c->slots[i];
        if (slot->passes && slot->member && turns(c, slot->held, result_waiting(c, slot)))
            hold_result(slot, !slot->held);
        held = held || slot->held;
    }
    if (!held && !c->args_held && !c->join)
        list_remove(&c->flowing);
    else if (list_empty(&c->flowing))
        list_append(&c->router->flowing, &c->flowing);
}

// Arguments

int stream_add(struct call *c, uint32_t slot, const struct record_part *part, struct err *err)
{
    const struct call_slot *at = &c->slots[slot];
    struct member *m = at->member;
    if (!m)
        return 0;
    if (record_stream_add(&c->slots[slot].args, part, 1, err) < 0)
        return err_set(err, ERR_THROTTLED,
                       "%s(): rank %u of %s has no room for more of its arguments: %zu bytes wait for it to read them",
                       c->req.method, m->rank, c->group->key, at->args.writer->bytes);
    peer_changed(&m->peer);
    return 0;
}

static int take_args(struct call *c, const struct call_body *piece, struct err *err)
{
    int r = 0;
    if (!piece->len)
        return 0;
    struct blob *kept = keep_piece(c, piece);
    if (!kept)
        return err_set(err, ERR_LIMIT, "%s(): no room for more of its arguments", c->req.method);
    const struct record_part part = part_of(kept, piece);
    if (c->cut)
        r = cut_take(c, &part, err);
    for (uint32_t i = 0; i < c->n && !c->cut && r == 0; i++)
        r = stream_add(c, i, &part, err);
    blob_unref(kept);
    return r;
}

// No more of them is awaited: nothing depends on this GO.
static void end_args(struct call *c)
{
    if (c->args_held)
        hold_args(c, false);
    c->args_held = false;
    if (c->state == CALL_STREAMING)
        call_become(c, CALL_RUNNING);
}

bool stream_args(struct call *c, const struct call_body *piece, bool last)
{
    struct err err = ERR_INIT;
    struct failure f;
    if (take_args(c, piece, &err) < 0 || (last && c->cut && cut_end(c, &err) < 0)) {
        failure_from(&f, &err);
        call_fail(c, &f);
        return false;
    }
    if (last) {
        for (uint32_t i = 0; i < c->n; i++) {
            record_stream_end(&c->slots[i].args);
            if (c->slots[i].member)
                peer_changed(&c->slots[i].member->peer);
        }
        end_args(c);
        cut_free(TAKE_PTR(c->cut));
    }
    stream_flow(c);
    return true;
}

// Ranks that have only a part of the arguments are told that no more will come; they answer nothing. What is not told
// would hold up for ever what is ordered behind it.
static void abort_args(struct call *c)
{
    stats_end(&c->stat); // it is no answer of theirs
    for (uint32_t i = 0; i < c->n; i++) {
        struct call_slot *slot = &c->slots[i];
        struct member *m = slot->member;
        if (!m || !slot->args.item)
            continue;
        if (record_stream_drop(&slot->args) && m->peer.out && !m->peer.close_code) {
            record_writer_insist(m->peer.out,
                                 &(struct record_header){.type = RECORD_CANCEL, .call = c->id, .rank = m->rank});
            peer_changed(&m->peer);
        }
        call_slot_ends(slot);
    }
}

void stream_abort(struct call *c)
{
    bool held = false;
    if (c->state == CALL_STREAMING)
        abort_args(c);
    end_args(c);
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
    struct blob *kept = keep_piece(c, piece);
    if (!kept)
        return err_set(err, ERR_LIMIT, "%s() of %s ran, but no more of its result may wait here", c->req.method,
                       c->group->key);
    c->stat.bytes_out += piece->len;
    const struct record_part part = part_of(kept, piece);
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
    struct blob *kept = copy ? copy_piece(c, piece) : keep_piece(c, piece);
    if (!kept)
        return err_set(err, ERR_LIMIT, "%s() of %s ran, but its results together are more than may wait here",
                       c->req.method, c->group->key);
    const struct record_part part = copy ? (struct record_part){kept, 0, piece->len} : part_of(kept, piece);
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
