// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/result.h"

#include "common/base/str.h"
#include "common/wire/safetensors.h"
#include "operator/proxy/answer.h"
#include "operator/proxy/args.h"
#include "operator/proxy/call_end.h"
#include "operator/proxy/collect.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/join.h"
#include "operator/proxy/remote_object.h"

#include <string.h>

// The last part of the answer was sent, or there is an error instead.
static void end(struct call *c, int r, const struct err *err)
{
    if (r < 0)
        call_fail_err(c, err);
    else
        call_settle(c);
}

// False: the call is answered, and may be gone.
static bool advance(struct call *c)
{
    struct err err = ERR_INIT;
    int r = join_advance(c, &err);
    if (r == JOIN_GOES_ON)
        return true;
    if (r == JOIN_STREAMED)
        answer_streamed(c);
    end(c, r, &err);
    return false;
}

static void collect_all(struct call *c)
{
    struct err err = ERR_INIT;
    if (!c->req.keep && c->plan && c->plan->d.join && !collect_is_nothing(c)) {
        join_open(c);
        (void)advance(c);
        return;
    }
    int r = c->req.keep ? object_collect(c, &err) : collect(c, &err);
    end(c, r, &err);
}

static bool pause_results(struct call *c)
{
    bool paused = false;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->ranks[i].passes)
            paused |= answer_flow(&c->ranks[i], c->join ? join_waits(c, c->req.first + i) : answer_waits(c));
    return paused;
}

void result_flow(struct call *c)
{
    if (c->join && !advance(c))
        return;
    bool args_paused = args_flow(c), paused = pause_results(c) || args_paused;
    if (!paused && !c->join)
        list_remove(&c->flowing);
    else if (list_empty(&c->flowing))
        list_append(&c->router->flowing, &c->flowing);
}

static void collect_more(struct call *c)
{
    if (c->join)
        (void)advance(c);
    else if (c->left == 0)
        collect_all(c);
}

static void send_single(struct call *c, uint32_t rank, const struct call_body *body)
{
    struct err err = ERR_INIT;
    int r = answer_send_single(c, rank, body, &err);
    end(c, r, &err);
}

static void send_end(struct call *c)
{
    answer_send_copy(c, RECORD_GROUP, "null", 4); // the client wants no result
    call_settle(c);
}

// There is no room for the result. If the rank keeps it, nobody gets a reference to it either.
static void refuse(struct call *c, struct member *m, const struct call_body *body, const struct err *err)
{
    if (c->req.keep)
        object_discard(m, body->data, body->len, c->req.pin);
    call_fail_err(c, err);
}

// The result is part of the answer, and waits for the others.
static void keep(struct call_rank *rank, struct member *m, const struct call_body *body)
{
    struct call *c = rank->call;
    struct err err = ERR_INIT;
    if (dispatch_plan_wants(c->plan, m->rank) && answer_keep(rank, body, &err) < 0)
        refuse(c, m, body, &err);
    else
        collect_more(c);
}

void result_whole(struct call_rank *rank, const struct call_body *body)
{
    struct call *c = rank->call;
    struct member *m = rank->member;
    uint32_t number = m->rank;
    bool kept = c->req.keep;
    if (!call_rank_ends(rank)) {
        if (kept)
            object_discard(m, body->data, body->len, c->req.pin);
        call_free_if_over(c);
    } else if (c->req.quiet) {
        if (c->left == 0)
            send_end(c);
    } else if (c->req.single && !kept) {
        send_single(c, number, body);
    } else if (c->left == 0 && !kept && collect_only(c, body)) {
        call_settle(c);
    } else {
        keep(rank, m, body);
    }
}

static void result_ends(struct call_rank *rank)
{
    struct call *c = rank->call;
    if (!call_rank_ends(rank)) {
        call_free_if_over(c);
    } else if (c->req.quiet) {
        if (c->left == 0)
            send_end(c);
    } else if (c->req.single) {
        answer_streamed(c);
        call_settle(c);
    } else {
        collect_more(c);
    }
}

void result_too_long(struct call_rank *rank, bool last)
{
    struct call *c = rank->call;
    rank->passes = true;
    if (!call_answered(c))
        call_refuse(
            c, ERR_LIMIT,
            "%s() of %s ran, but the proxy cannot collect the results: it has no room for the result of rank %u "
            "(at most %zu bytes); keep them on the ranks (keep), or call one rank at a time",
            c->req.method, c->group->key, rank->member->rank, c->router->config.max_whole);
    if (last)
        result_ends(rank);
}

void result_error(struct call_rank *rank, const struct call_body *body)
{
    struct call *c = rank->call;
    const struct member *m = rank->member;
    if (!call_rank_ends(rank)) {
        call_free_if_over(c);
        return;
    }
    struct call_failure said, f;
    call_failure_decode(&said, body->data, body->len);
    call_failure_set(&f, ERR_INTERNAL, "rank %u: %s", m->rank, said.message);
    memcpy(f.code, said.code, sizeof f.code);
    f.rank = m->rank;
    f.pod = m->pod;
    f.node = m->node;
    f.unran = said.unran;
    f.cause = said.cause;
    f.cause_len = said.cause_len;
    if (str_eq(f.code, err_name(ERR_TIMEOUT))) {
        f.late = (struct call_failure_late){.ranks = {m->rank}, .n = 1};
        call_list_late(c, &f.late);
    }
    call_fail(c, &f);
}

// Results in pieces

static int join_piece(struct call_rank *rank, const struct call_body *piece, bool copy, bool last, struct err *err)
{
    const struct call *c = rank->call;
    struct blob *kept = copy ? body_copy_piece(piece, c->quota) : body_keep_piece(piece, c->quota);
    if (!kept)
        return answer_no_room(c, err);
    const struct record_part part = copy ? (struct record_part){kept, 0, piece->len} : body_part(piece, kept);
    int r = join_add(rank, &part, last, err);
    blob_unref(kept);
    return r;
}

static int join(struct call_rank *rank, const struct call_body *piece, bool first, bool last, struct err *err)
{
    struct call_body head = *piece, rest = *piece;
    struct err ignored = ERR_INIT;
    size_t len;
    if (!first || !piece->blob || !piece->blob->area)
        return join_piece(rank, piece, false, last, err);
    // The result is in shared memory: only its head is copied.
    if (safetensors_head_len(piece->data, &len, &ignored) == 0 && len < piece->len)
        head.len = len;
    rest.data += head.len;
    rest.len -= head.len;
    int r = join_piece(rank, &head, true, last && !rest.len, err);
    return r < 0 || !rest.len ? r : join_piece(rank, &rest, false, last, err);
}

// Returns true if the client gets the result.
static bool wants(const struct call_rank *rank)
{
    const struct call *c = rank->call;
    return !call_answered(c) && !c->req.quiet && (c->req.single || dispatch_plan_wants(c->plan, rank->member->rank));
}

static int take_result(struct call_rank *rank, const struct call_body *piece, bool first, bool last, struct err *err)
{
    return rank->call->req.single ? answer_pass(rank->call, rank->member->rank, piece, first, err)
                                  : join(rank, piece, first, last, err);
}

bool result_piece(struct call_rank *rank, const struct call_body *piece, bool first, bool last)
{
    struct call *c = rank->call;
    struct err err = ERR_INIT;
    bool passes = c->req.single && !call_answered(c) && !c->session->whole;
    rank->member->peer.want = 0;
    if (first && c->req.keep) // a rank that keeps its result answers with a short text
        return false;
    if (first && wants(rank) && !passes && !join_takes(rank, piece, &rank->member->peer.want))
        return false;
    rank->passes = true;
    if (wants(rank) && take_result(rank, piece, first, last, &err) < 0)
        call_fail_err(c, &err);
    if (last)
        result_ends(rank);
    else if (!call_answered(c))
        result_flow(c);
    return true;
}
